"""Months by their names in the languages that IMDb's older pages were written in."""

from __future__ import annotations

# One text a language; "|" stands between two forms of one name.
_NAMES = (
    "january february march april may june july august september october november december",
    "januar|jänner februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar mars|marts april mai|maj juni juli august september oktober november desember|december",
    "január február március április május június július augusztus szeptember október november december",
    """stycznia|styczeń lutego|luty marca|marzec kwietnia|kwiecień maja|maj czerwca|czerwiec
    lipca|lipiec sierpnia|sierpień września|wrzesień października|październik listopada|listopad grudnia|grudzień""",
    """ledna|leden února|únor března|březen dubna|duben května|květen června|červen
    července|červenec srpna|srpen září října|říjen listopadu prosince|prosinec""",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",  # noqa: RUF001 - Turkish
    """января|январь февраля|февраль марта|март апреля|апрель мая|май июня|июнь
    июля|июль августа|август сентября|сентябрь октября|октябрь ноября|ноябрь декабря|декабрь""",
    """січня|січень лютого|лютий березня|березень квітня|квітень травня|травень червня|червень
    липня|липень серпня|серпень вересня|вересень жовтня|жовтень листопада|листопад грудня|грудень""",
)
# Of these no abbreviations: Finnish "mar…" is November, and would take "Mar" away from March.
_WHOLE_NAMES = (
    """tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta
    heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta""",
    """ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου
    ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου δεκεμβρίου""",
    "януари февруари март април май юни юли август септември октомври ноември декември",
    "januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra",
    "januar februar marec april maj junij julij avgust september oktober november december",
    "januari februari maret april mei juni juli agustus september oktober november desember",
)
_SHORTEST_ABBREVIATION = 3


def _numbers() -> dict[str, int]:
    """Return the number of every name, and of every beginning of names that are all of the same month."""
    names = _numbered(_NAMES)
    meant: dict[str, set[int]] = {}
    for name, number in names.items():
        for length in range(_SHORTEST_ABBREVIATION, len(name)):
            meant.setdefault(name[:length], set()).add(number)
    return (
        {short: numbers.pop() for short, numbers in meant.items() if len(numbers) == 1}
        | names
        | _numbered(_WHOLE_NAMES)
    )


def _numbered(languages: tuple[str, ...]) -> dict[str, int]:
    return {
        name: number
        for language in languages
        for number, forms in enumerate(language.split(), start=1)
        for name in forms.split("|")
    }


_NUMBERS = _numbers()


def month_number(name: str) -> int:
    """Return 1 to 12 for a month's name or abbreviation in any of the languages. Raises ValueError.

    >>> [month_number(name) for name in ("Oct", "octobre", "Dez", "ноября", "marraskuuta")]
    [10, 10, 12, 11, 11]
    """
    number = _NUMBERS.get(name.lower())
    if number is None:
        raise ValueError(f"{name!r} is not a month")
    return number
