"""Jobs of several lanes in one pool of threads."""

from functools import partial

import pytest

from admm_softmax._parallel import Lanes, ordered_map, use_threads
from tests.test_parallel import PATIENCE


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_jobs_of_a_lane_run_in_order_and_those_of_others_beside_them(threads):
    with use_threads(threads):
        lanes = Lanes(5)
    done, running = [[] for _ in range(5)], [0] * 5

    def job(lane, number):
        running[lane] += 1
        assert running[lane] == 1
        sum(range(20_000))
        done[lane].append(number)
        running[lane] -= 1

    jobs = [lanes.start(i % 5, partial(job, i % 5, i)) for i in range(200)]
    for each in jobs:
        each.result(PATIENCE)
    assert done == [list(range(lane, 200, 5)) for lane in range(5)]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_with_its_job_and_the_lane_goes_on(threads):
    with use_threads(threads):
        lanes = Lanes(2)
    failed = lanes.start(0, lambda: 1 / 0)
    lanes.start(0, lambda: None).result(PATIENCE)
    with pytest.raises(ZeroDivisionError):
        failed.result(PATIENCE)


def test_a_lane_without_a_job_holds_no_thread():
    # What brings the jobs may use the threads: reading through a transform, for example.
    with use_threads(2):
        lanes = Lanes(2)
        for _ in range(3):
            jobs = [lanes.start(lane, lambda: None) for lane in range(2)]
            assert ordered_map(abs, [-1, -2, -3]) == [1, 2, 3]
            for each in jobs:
                each.result(PATIENCE)
