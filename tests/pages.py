"""What tests ask of the HTML pages that the library writes."""

import re

#: Pictures written into the page; letters in them may spell anything, "http" too.
PICTURES = re.compile(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]*")


def assert_self_contained(page):
    """The page loads nothing: no address is left once the pictures inside it are cut out."""
    words = PICTURES.sub("", page).replace("http-equiv", "")
    at = words.find("http")
    assert at < 0, words[max(at - 40, 0) : at + 60]
