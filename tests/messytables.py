"""Ten tables as people have them, each with troubles of its own, and what predicts their label."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars

N = 240


@dataclass(frozen=True)
class MessyTable:
    """A table: its file, the column of its labels, options of reading, and the error that is reached at most."""

    name: str
    label: str
    write: Callable[[Path], Path]
    options: tuple[str, ...] = ()
    error: float = 0.2
    columns: dict[str, str] = field(default_factory=dict)  # and a piece of what is said of each


def _random(seed):
    return np.random.default_rng(seed)


def _rows(header, rows, delimiter=",", end="\n"):
    return end.join([header, *(delimiter.join(map(str, row)) for row in rows)]) + end


def _text(name, content, encoding="utf-8"):
    def write(folder):
        path = folder / name
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        return path

    return write


def passengers(start=1):
    """Titanic-like: numbers of rows, names with commas and quotes, gaps, categories, few cabins."""
    random = _random(0)
    rows = []
    for i in range(N):
        is_female = random.random() < 0.4
        survived = int(random.random() < (0.9 if is_female else 0.1))
        name = f'"Smith{i}, {"Mrs" if is_female else "Mr"}. Jo ""J"" {i % 7}"'
        age = "" if i % 6 == 0 else f"{random.integers(1, 80)}"
        cabin = f"C{i % 4}" if i % 5 == 0 else ""
        fare = f"{random.gamma(2, 15):.4f}"
        rows.append(
            (start + i, survived, 1 + i % 3, name, "female" if is_female else "male", age, fare, cabin, "SCQ"[i % 3])
        )
    return _rows("PassengerId,Survived,Pclass,Name,Sex,Age,Fare,Cabin,Embarked", rows)


def iris_of_pandas():
    """An index column without a name, as pandas writes it, and the label in words."""
    random = _random(1)
    kinds = np.arange(N) % 3
    rows = [
        (i, *(f"{v:.2f}" for v in random.normal(kind + 1, 0.3, 4)), ["setosa", "versicolor", "virginica"][kind])
        for i, kind in enumerate(kinds)
    ]
    return _rows(",sepal length,sepal width,petal length,petal width,species", rows)


def weather_of_europe():
    """Semicolons, decimal commas, dates with points, an encoding of old, and carriage returns."""
    random = _random(2)
    rows = []
    for i in range(N):
        warm = i % 2
        degrees = f"{random.normal(22 if warm else 3, 3):.1f}".replace(".", ",")
        rows.append(
            (
                f"{1 + i % 28:02d}.{1 + i % 12:02d}.2023",
                degrees,
                "Köln" if i % 3 else "Zürich",
                "schön" if warm else "kühl",
            )
        )
    return _rows("Datum;Temperatur °C;Ort;Wetter", rows, ";", "\r\n")


def sensors_with_tabs():
    """Tabs, truth values, a constant column, question marks for what is missing."""
    random = _random(3)
    rows = []
    for i in range(N):
        broken = i % 2
        volts = "?" if i % 11 == 0 else f"{random.normal(5 - 2 * broken, 0.5):.3f}"
        rows.append(
            (
                "plant 7",
                volts,
                "true" if (random.random() < 0.9) == broken else "false",
                f"{random.normal():.3e}",
                "yes" if broken else "no",
            )
        )
    return _rows("site\tvolts\talarm\tnoise\tbroken", rows, "\t")


def loans_with_groups():
    """Thousands with commas in quotes, ISO times, capital truth values, NA, and rare categories."""
    random = _random(4)
    rows = []
    for i in range(N):
        bad = i % 2
        income = f'"{int(random.normal(60_000 - 30_000 * bad, 8_000)):,}"'
        when = f"2022-{1 + i % 12:02d}-{1 + i % 28:02d} {i % 24:02d}:30:00"
        town = f"hamlet {i}" if i % 10 == 0 else ["Ulm", "Rome", "Bath"][i % 3]
        rows.append((income, when, bool(i % 3), town, "NA" if i % 9 == 0 else i % 5, "default" if bad else "paid"))
    return _rows("income,opened,owner,town,children,outcome", rows)


def reviews():
    """Text with line ends and quotes, a number of stars, and identifiers of users."""
    random = _random(5)
    good, bad = ("great", "lovely", "works well"), ("broken", "awful", "never again")
    rows = []
    for i in range(N):
        words = good if i % 2 else bad
        text = f'"{random.choice(words)}, I said\nand ""{random.choice(words)}"" it is, number {i}"'
        rows.append((f"u{i:05d}x", text, random.integers(1, 6), "good" if i % 2 else "bad"))
    return _rows("user,review,stars,mood", rows)


def letters_without_names():
    """No header, the label first."""
    random = _random(6)
    rows = [("ABC"[i % 3], *random.integers(0, 8, 5) + 4 * np.eye(3, 5, dtype=int)[i % 3]) for i in range(N)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def survey_with_gaps():
    """A byte order mark, blank lines, spaces around cells, empty columns, and labels that are numbers."""
    random = _random(7)
    rows = []
    for i in range(N):
        likes = i % 2
        answer = ["often", " often", "often "][i % 3] if (random.random() < 0.85) == likes else "rarely"
        rows.append((f" {random.integers(18, 90)}", answer, "", "" if i % 4 else "a remark", likes))
    text = _rows("age,exercise,unused,remark,likes", rows).replace("\n", "\n\n", 20)
    return "\ufeff" + text + "\n\n"


def bars():
    """Bars between cells, mixed units in one category, negative and scientific numbers."""
    random = _random(8)
    rows = [(f"{random.normal(-5 * (i % 2), 1):.2e}", ["S", "M", "XL", "40", "42"][i % 5], i % 2) for i in range(N)]
    return _rows("value|size|target", rows, "|")


def stock():
    """Everything is a category; the label has spaces and quotes."""
    rows = [
        (["red", "green", "blue"][i % 3], ["small", "large"][i % 2], '"in stock"' if i % 3 else '"sold ""out"""')
        for i in range(N)
    ]
    return _rows("colour,size,state", rows)


def _gz(name, content):
    return _text(name, gzip.compress(content.encode()))


TABLES = [
    MessyTable(
        "passengers",
        "Survived",
        _text("passengers.csv", passengers()),
        columns={"PassengerId": "an identifier", "Age": "missing", "Name": "text", "Sex": "category: female, male"},
    ),
    MessyTable(
        "iris", "species", _text("iris.csv", iris_of_pandas()), error=0.1, columns={"column 1": "an identifier"}
    ),
    MessyTable(
        "weather",
        "Wetter",
        _text("weather.csv", weather_of_europe(), "cp1252"),
        ("--encoding", "cp1252"),
        0.05,
        {"Datum": "date (written as %d.%m.%Y)", "Temperatur °C": "number"},
    ),
    MessyTable(
        "sensors",
        "broken",
        _text("sensors.tsv", sensors_with_tabs()),
        error=0.1,
        columns={"site": "the same in all rows", "alarm": "true or false", "volts": "missing"},
    ),
    MessyTable(
        "loans",
        "outcome",
        _gz("loans.csv.gz", loans_with_groups()),
        error=0.1,
        columns={"income": "number", "opened": "the day", "owner": "true or false", "town": "rare ones share"},
    ),
    MessyTable(
        "reviews",
        "mood",
        _text("reviews.csv", reviews()),
        error=0.05,
        columns={"user": "an identifier", "review": "text"},
    ),
    MessyTable("letters", "1", _text("letters.csv", letters_without_names()), error=0.35),
    MessyTable(
        "survey",
        "likes",
        _text("survey.csv", survey_with_gaps()),
        columns={"unused": "no values", "remark": "missing", "exercise": "category: often, rarely"},
    ),
    MessyTable("bars", "target", _text("bars.csv", bars()), error=0.1, columns={"size": "category"}),
    MessyTable("stock", "state", _text("stock.csv", stock()), error=0.01, columns={"colour": "category"}),
]


def shuffled_columns(frame: polars.DataFrame) -> polars.DataFrame:
    """The same table, its columns the other way round."""
    return frame.select(frame.columns[::-1])
