"""The library's docstrings as reStructuredText.

They are written to be read in a terminal. Three habits of theirs mean something else to
docutils: bars (|W|), names that end in an underscore (coef_), and settings that are listed as
`name : text`, one per line, or in sections of NumPy's style, where one entry may have several
names. Settings become definition lists, the others are escaped.
"""

import re

SETTING = re.compile(r"^([A-Za-z_][\w*]*(?:, [A-Za-z_][\w*]*)*) : (.*)$")
UNDERLINE = re.compile(r"^-{3,}$")
#: Sections of NumPy's style whose entries are names, with a kind behind a colon.
TERMS = {"Parameters", "Attributes", "Returns", "Raises"}
LITERAL = re.compile(r"(`+[^`]*`+)")


def escape(line):
    """Escape bars, stars and trailing underscores outside of code."""
    parts = LITERAL.split(line)
    for i in range(0, len(parts), 2):
        text = parts[i].replace("|", r"\|").replace("*", r"\*")
        parts[i] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)
    return "".join(parts)


def code_lines(lines):
    """For each line, whether it belongs to a doctest or a literal block."""
    found, block, example = [], None, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip():
            if block is not None and indent <= block:
                block = None
            example = example or line.lstrip().startswith(">>>")
        else:
            example = False
        found.append(example or block is not None)
        if not found[-1] and line.rstrip().endswith("::"):
            block = indent
    return found


def term(names, kind, text=""):
    """An entry of a definition list: what it is called, what kind it is, and what it means."""
    first = f"``{names.strip()}``" + (f" : {escape(kind)}" if kind else "")
    return [first, f"    {escape(text)}"] if text else [first]


def translated(lines):
    """The lines of a docstring as reStructuredText."""
    result, section, listing = [], None, False
    code = code_lines(lines)
    for i, line in enumerate(lines):
        if UNDERLINE.match(line.strip()):
            continue
        if i + 1 < len(lines) and UNDERLINE.match(lines[i + 1].strip()):
            section = line.strip()
            result += [f".. rubric:: {section}", ""]
            continue
        starts = bool(line.strip()) and not line.startswith(" ")
        setting = SETTING.match(line)
        if code[i]:
            result.append(line)
        elif section in TERMS and starts:
            names, _, kind = line.partition(" : ")
            result += term(names, kind)
        elif section is None and setting:
            if not listing and result and result[-1].strip():
                result.append("")
            result += term(setting[1], "", setting[2])
        else:
            if listing and starts:
                result.append("")
            result.append(escape(line))
        listing = section is None and not code[i] and (bool(setting) or (listing and not starts))
    return result


def translate(app, what, name, obj, options, lines):
    """Sphinx's event: change the lines in place."""
    lines[:] = translated(lines)


def setup(app):
    """Connect the event."""
    app.connect("autodoc-process-docstring", translate)
    return {"parallel_read_safe": True}
