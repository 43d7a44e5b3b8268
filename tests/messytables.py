"""Ten tables as people have them, each with troubles of its own, and what predicts their label."""

import gzip
from dataclasses import dataclass

import numpy as np
import polars

N = 240


@dataclass(frozen=True)
class MessyTable:
    """A table: the column of its labels, its file, the error that is reached at most, and options of reading."""

    label: str
    file: str
    content: bytes
    error: float
    options: tuple[str, ...]
    columns: dict[str, str]  # and a piece of what is said of each

    @property
    def name(self):
        return self.file.split(".")[0]

    def write(self, folder):
        (folder / self.file).write_bytes(self.content)
        return folder / self.file


def _rows(header, rows, delimiter=",", end="\n"):
    return end.join([header, *(delimiter.join(map(str, row)) for row in rows)]) + end


def passengers():
    """Titanic-like: numbers of rows, names with commas and quotes, gaps, categories, few cabins."""
    random = np.random.default_rng(0)
    rows = []
    for i in range(N):
        sex = "female" if random.random() < 0.4 else "male"
        survived = int(random.random() < (0.9 if sex == "female" else 0.1))
        name = f'"Smith{i}, {"Mrs" if sex == "female" else "Mr"}. Jo ""J"" {i % 7}"'
        age = "" if i % 6 == 0 else f"{random.integers(1, 80)}"
        cabin = f"C{i % 4}" if i % 5 == 0 else ""
        rows.append((1 + i, survived, 1 + i % 3, name, sex, age, f"{random.gamma(2, 15):.4f}", cabin, "SCQ"[i % 3]))
    return _rows("PassengerId,Survived,Pclass,Name,Sex,Age,Fare,Cabin,Embarked", rows)


def iris_of_pandas():
    """An index column without a name, as pandas writes it, and the label in words."""
    random = np.random.default_rng(1)
    kinds = np.arange(N) % 3
    rows = [
        (i, *(f"{v:.2f}" for v in random.normal(kind + 1, 0.3, 4)), ["setosa", "versicolor", "virginica"][kind])
        for i, kind in enumerate(kinds)
    ]
    return _rows(",sepal length,sepal width,petal length,petal width,species", rows)


def weather_of_europe():
    """Semicolons, decimal commas, dates with points, an encoding of old, and carriage returns."""
    random = np.random.default_rng(2)
    rows = []
    for i in range(N):
        degrees = f"{random.normal(22 if i % 2 else 3, 3):.1f}".replace(".", ",")
        day, town = f"{1 + i % 28:02d}.{1 + i % 12:02d}.2023", "Köln" if i % 3 else "Zürich"
        rows.append((day, degrees, town, "schön" if i % 2 else "kühl"))
    return _rows("Datum;Temperatur °C;Ort;Wetter", rows, ";", "\r\n")


def sensors_with_tabs():
    """Tabs, truth values, a constant column, question marks for what is missing."""
    random = np.random.default_rng(3)
    rows = []
    for i in range(N):
        broken = i % 2
        volts = "?" if i % 11 == 0 else f"{random.normal(5 - 2 * broken, 0.5):.3f}"
        alarm = "true" if (random.random() < 0.9) == broken else "false"
        rows.append(("plant 7", volts, alarm, f"{random.normal():.3e}", "yes" if broken else "no"))
    return _rows("site\tvolts\talarm\tnoise\tbroken", rows, "\t")


def loans_with_groups():
    """Thousands with commas in quotes, ISO times, capital truth values, NA, and rare categories."""
    random = np.random.default_rng(4)
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
    random = np.random.default_rng(5)
    good, bad = ("great", "lovely", "works well"), ("broken", "awful", "never again")
    rows = []
    for i in range(N):
        words = good if i % 2 else bad
        text = f'"{random.choice(words)}, I said\nand ""{random.choice(words)}"" it is, number {i}"'
        rows.append((f"u{i:05d}x", text, random.integers(1, 6), "good" if i % 2 else "bad"))
    return _rows("user,review,stars,mood", rows)


def letters_without_names():
    """No header, the label first."""
    random = np.random.default_rng(6)
    rows = [("ABC"[i % 3], *random.integers(0, 8, 5) + 4 * np.eye(3, 5, dtype=int)[i % 3]) for i in range(N)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def survey_with_gaps():
    """A byte order mark, blank lines, spaces around cells, empty columns, and labels that are numbers."""
    random = np.random.default_rng(7)
    rows = []
    for i in range(N):
        likes = i % 2
        answer = ["often", " often", "often "][i % 3] if (random.random() < 0.85) == likes else "rarely"
        rows.append((f" {random.integers(18, 90)}", answer, "", "" if i % 4 else "a remark", likes))
    text = _rows("age,exercise,unused,remark,likes", rows).replace("\n", "\n\n", 20)
    return "\ufeff" + text + "\n\n"


def bars():
    """Bars between cells, mixed units in one category, negative and scientific numbers."""
    random = np.random.default_rng(8)
    rows = [(f"{random.normal(-5 * (i % 2), 1):.2e}", ["S", "M", "XL", "40", "42"][i % 5], i % 2) for i in range(N)]
    return _rows("value|size|target", rows, "|")


def stock():
    """Everything is a category; the label has spaces and quotes."""
    states = ['"in stock"', '"sold ""out"""']
    rows = [(["red", "green", "blue"][i % 3], ["small", "large"][i % 2], states[i % 3 == 0]) for i in range(N)]
    return _rows("colour,size,state", rows)


def _table(label, file, content, error=0.2, options=(), **columns):
    """Describe a table in a file, and a piece of what is said of some of its columns."""
    if isinstance(content, str):
        content = content.encode("cp1252" if options else "utf-8")
    return MessyTable(label, file, content, error, options, columns)


PEOPLE = {"PassengerId": "an identifier", "Age": "missing", "Name": "text", "Sex": "category: female, male"}
WEATHER = {"Datum": "date (written as %d.%m.%Y)", "Temperatur °C": "number"}
SENSORS = {"site": "the same in all rows", "alarm": "true or false", "volts": "missing"}
LOANS = {"income": "number", "opened": "the day", "owner": "true or false", "town": "rare ones share"}
SURVEY = {"unused": "no values", "remark": "missing", "exercise": "category: often, rarely"}
TABLES = [
    _table("Survived", "passengers.csv", passengers(), **PEOPLE),
    _table("species", "iris.csv", iris_of_pandas(), 0.1, **{"column 1": "an identifier"}),
    _table("Wetter", "weather.csv", weather_of_europe(), 0.05, ("--encoding", "cp1252"), **WEATHER),
    _table("broken", "sensors.tsv", sensors_with_tabs(), 0.1, **SENSORS),
    _table("outcome", "loans.csv.gz", gzip.compress(loans_with_groups().encode()), 0.1, **LOANS),
    _table("mood", "reviews.csv", reviews(), 0.05, user="an identifier", review="text"),
    _table("1", "letters.csv", letters_without_names(), 0.35),
    _table("likes", "survey.csv", survey_with_gaps(), **SURVEY),
    _table("target", "bars.csv", bars(), 0.1, size="category"),
    _table("state", "stock.csv", stock(), 0.01, colour="category"),
]


def shuffled_columns(frame: polars.DataFrame) -> polars.DataFrame:
    """The same table, its columns the other way round."""
    return frame.select(frame.columns[::-1])
