"""Checks that every link within the built site leads somewhere: `check_links.py FOLDER`.

Pages, pictures, scripts and anchors. Links to other sites are only counted.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what the tag refers to, and what it can be referred to by."""
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [found[name] for name in ("href", "src") if found.get(name)]


def broken(site):
    """A line for each link that leads nowhere, and how many pages and links to elsewhere."""
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path) for path in found}
    lines, elsewhere = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                elsewhere += 1
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            known = pages[target].anchors if target in pages else None
            if not target.exists() or (
                parts.fragment and known is not None and unquote(parts.fragment) not in known
            ):
                lines.append(f"{path.relative_to(site)}: {link}")
    return sorted(set(lines)), len(pages), elsewhere


def main():
    """Print what is broken, and fail if anything is."""
    site = Path(sys.argv[1]).resolve()
    lines, pages, elsewhere = broken(site)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(
        f"{pages} pages, {len(lines)} broken links; {elsewhere} links to other sites not followed"
    )
    return int(bool(lines) or not pages)


if __name__ == "__main__":
    sys.exit(main())
