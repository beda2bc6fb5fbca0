"""The library's docstrings as reStructuredText.

They are written to be read in a terminal. Three habits of theirs mean something else to
docutils: bars (|W|), names that end in an underscore (coef_), and settings that are listed as
`name : text`, one per line. The last become a definition list, the others are escaped.
"""

import re

SETTING = re.compile(r"^([A-Za-z_][\w*]*(?:, [A-Za-z_][\w*]*)*) : (.*)$")
UNDERLINE = re.compile(r"^-{3,}$")
TYPE = re.compile(r"^(:(?:var)?type [^:]+: )([^*`].*)$")
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


def translated(lines):
    """The lines of a docstring as reStructuredText."""
    result, section, listing = [], False, False
    for i, (line, code) in enumerate(zip(lines, code_lines(lines), strict=True)):
        section = section or (i + 1 < len(lines) and UNDERLINE.match(lines[i + 1].strip()))
        if code or (section and not line.startswith(" ")):
            result.append(line)
            continue
        setting = SETTING.match(line)
        ends = listing and line.strip() and not line.startswith(" ") and not setting
        if (setting and not listing and result and result[-1].strip()) or ends:
            result.append("")
        listing = bool(setting) or (listing and line.startswith(" "))
        if setting:
            result += [f"``{setting[1]}``", f"    {escape(setting[2])}"]
        else:
            result.append(escape(line))
    return result


def translate(app, what, name, obj, options, lines):
    """Sphinx's event: change the lines in place."""
    lines[:] = translated(lines)


def keep_types_as_words(app, what, name, obj, options, lines):
    """Sphinx's event: types are words ("array of shape (n, K)"), not names to link to."""
    for i, line in enumerate(lines):
        found = TYPE.match(line)
        if found:
            lines[i] = f"{found[1]}*{found[2]}*"


def setup(app):
    """Translate before napoleon, which reads the sections of NumPy's style; the types after it."""
    app.connect("autodoc-process-docstring", translate, priority=400)
    app.connect("autodoc-process-docstring", keep_types_as_words, priority=600)
    return {"parallel_read_safe": True}
