"""Examples, tables, columns of text, model files, and the data set that comes with the library."""

from larank.data.examples import read, read_csv, read_npz, read_svmlight, write_svmlight
from larank.data.files import DataFormatError
from larank.data.letter import TrainTest, data_directory, load_letter
from larank.data.stream import ExampleFile
from larank.data.tables import TableFile

__all__ = [
    "DataFormatError",
    "ExampleFile",
    "TableFile",
    "TrainTest",
    "data_directory",
    "load_letter",
    "read",
    "read_csv",
    "read_npz",
    "read_svmlight",
    "write_svmlight",
]
