"""Write `workbench/datasets/data/names.txt.xz`: own names of countries and languages in 308 languages, from Unicode CLDR.

Babel (`pip install babel`) brings the data of CLDR; names that a locale inherits are left out, and so are locales of a region
or of a second script. Families of languages are the top level of common classifications, written down here.
"""

from __future__ import annotations

import collections
import lzma
import unicodedata
from pathlib import Path

from babel import Locale, localedata

FILE = Path(__file__).parents[1] / "workbench" / "datasets" / "data" / "names.txt.xz"
FAMILIES = {
    "Indo-European": "af an as ast bal be bg bgc bgn bho bn br bs ca ckb co cs cu cy da de doi dsb dv el en es fa fo fr frr fur "
    "fy ga gd gl gsw gu gv hi hr hsb hy is it kok ks ksh ku kw la lb lij lld lmo lrc lt ltg lv mai mk mr mzn nds ne nl nn no oc "
    "or os ccp cch pa pl prg ps pt raj rhg rm ro ru sa sc scn sd sdh si sk skr sl sq sr sv szl tg trw uk ur vec wa wae xnr yi",
    "Atlantic-Congo": "agq ak ann asa bas bem bez bss cgg dav dua dyo ebu ee ewo ff gaa guz ig jgo jmc kaj kam kcg kde ken ki "
    "kkj ksb ksf lag lg ln lu luy mer mgh mgo mua nd nmg nnh nr nso ny nyn rn rof rw rwk sbp seh sg sn ss st sw tn ts ve vmw vun "
    "wo xh xog yav yo zu blo",
    "Afro-Asiatic": "aa am apc ar byn gez ha he kab mt om rif shi sid so ssy syr ti tig tzm wal zgh",
    "Turkic": "az ba cv kaa kk ky sah tk tr tt ug uz",
    "Uralic": "et fi hu mdf myv se sma smj smn sms",
    "Austronesian": "bew ceb fil haw id jv mg mi ms su to trv",
    "Sino-Tibetan": "bo brx dz ii mni my yue zh",
    "Dravidian": "kn kxv ml ta te",
    "Nilo-Saharan": "dje kln khq luo mas nus saq ses teo twq",
    "Tai-Kadai": "blt lo shn th za",
    "Mande": "bm kpe nqo vai",
    "Algic": "csw mic",
    "Muskogean": "cho cic mus",
    "Austroasiatic": "km sat vi",
    "Constructed": "eo ia ie io jbo tok vo",
    "Creole": "ht kea mfe pap pcm pis tpi",
    "Tupian": "gn yrl",
}
SCRIPTS = {"Canadian": "Canadian syllabics", "Tai": "Tai Viet", "Ol": "Ol Chiki", "Nyiakeng": "Nyiakeng Puachue Hmong"}
SCRIPTS |= {"Hanifi": "Hanifi Rohingya", "Nko": "N’Ko", "Cjk": "Han"}
ENGLISH = {"apc": "Levantine Arabic", "lld": "Ladin", "skr": "Saraiki"}  # that CLDR does not name
FAMILY_OF = {code: family for family, codes in FAMILIES.items() for code in codes.split()}


def own_names() -> dict[str, set[str]]:
    """Language → its own names of countries and languages."""
    found: dict[str, set[str]] = {}
    for code in localedata.locale_identifiers():
        if "_" in code:
            continue
        data = localedata.load(code, merge_inherited=False)
        names = [*data.get("territories", {}).values(), *data.get("languages", {}).values()]
        texts = {" ".join(name.split()) for name in names if isinstance(name, str)} - {""}
        if texts:
            found[code] = texts
    return found


def script(names: set[str]) -> str:
    """The script in which most letters of these names are written, as Unicode calls it."""
    letters = collections.Counter(
        unicodedata.name(letter, "?").split()[0] for name in names for letter in name if letter.isalpha()
    )
    name = letters.most_common(1)[0][0].capitalize()
    return SCRIPTS.get(name, name)


def main() -> None:
    """Write the file: a line for each language, an empty line, a line for each string with its languages."""
    names = own_names()
    english = Locale("en").languages
    languages = [
        f"{code}\t{english.get(code) or ENGLISH[code]}\t{script(names[code])}\t{FAMILY_OF.get(code, 'Other')}"
        for code in sorted(names)
    ]
    owners: dict[str, list[str]] = collections.defaultdict(list)
    for code in sorted(names):
        for text in names[code]:
            owners[text].append(code)
    strings = [f"{text}\t{' '.join(codes)}" for text, codes in sorted(owners.items())]
    FILE.write_bytes(lzma.compress("\n".join([*languages, "", *strings]).encode(), preset=9))
    rows = sum(map(len, names.values()))
    print(f"{rows} rows, {len(strings)} strings, {len(languages)} languages, {FILE.stat().st_size / 1e3:.0f} kB")
    print("family not known:", *(code for code in sorted(names) if code not in FAMILY_OF))


if __name__ == "__main__":
    main()
