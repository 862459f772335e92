"""Makes the two fonts beside this file out of Debian's fonts-inter-variable.

    apt-get download fonts-inter-variable && dpkg -x fonts-inter-variable_*.deb x
    python3 -m venv v && v/bin/pip install fonttools
    v/bin/python make.py x/usr/share/fonts/truetype/inter-vf/Inter-roman.var.ttf

Two weights are fixed, the figures become tabular (they stand below each other in tables and on
axes), and what Latin, Greek and Cyrillic names and our own marks do not need is left out.
"""

import sys

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

KEPT = (
    list(range(0x20, 0x7F)) + list(range(0xA0, 0x180)) + list(range(0x386, 0x3CF))
    + list(range(0x400, 0x460))
    + [ord(c) for c in "–—‘’“”…·•′″‰→←↑↓≤≥≠≈±×−∞√Σµ‹›€†‡"]
)


def tabular(font):
    """Maps the digits to the glyphs that the feature tnum would put in their place."""
    table = font["GSUB"].table
    for record in table.FeatureList.FeatureRecord:
        if record.FeatureTag != "tnum":
            continue
        for index in record.Feature.LookupListIndex:
            for part in table.LookupList.Lookup[index].SubTable:
                mapping = getattr(getattr(part, "ExtSubTable", part), "mapping", {})
                for cmap in font["cmap"].tables:
                    for code in list(range(0x30, 0x3A)):
                        if code in cmap.cmap:
                            cmap.cmap[code] = mapping.get(cmap.cmap[code], cmap.cmap[code])


def make(source, weight, target):
    font = TTFont(source)
    axes = {"wght": weight}
    for axis in font["fvar"].axes:
        if axis.axisTag != "wght":
            axes[axis.axisTag] = axis.defaultValue if axis.axisTag != "slnt" else 0
    font = instancer.instantiateVariableFont(font, axes)
    tabular(font)
    options = subset.Options()
    options.layout_features = []
    options.hinting = False
    options.notdef_outline = True
    options.name_IDs = [0, 1, 2, 13, 14]
    cut = subset.Subsetter(options)
    cut.populate(unicodes=KEPT)
    cut.subset(font)
    font.save(target)


if __name__ == "__main__":
    make(sys.argv[1], 400, "Inter-Regular.ttf")
    make(sys.argv[1], 600, "Inter-SemiBold.ttf")
