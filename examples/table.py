"""A table as people have it: words, dates, gaps and an identifier; columns by name, and one file for the model."""

import csv
import random

from sklearn.pipeline import make_pipeline

import larank
from larank import LinearMulticlassSVC, TableEncoder
from larank.data import TableFile

# A file with an identifier, a category, decimal commas, dates, gaps and remarks.
chance = random.Random(0)
with open("customers.csv", "w", newline="") as file:
    writer = csv.writer(file, delimiter=";")
    writer.writerow(["customer", "plan", "monthly", "since", "remark", "left"])
    for number in range(600):
        left = chance.random() < 0.4
        monthly = f"{chance.gauss(25 if left else 45, 8):.2f}".replace(".", ",")
        since = (
            f"{chance.randint(1, 28):02d}.{chance.randint(1, 12):02d}.{2021 if left else chance.choice([2018, 2021])}"
        )
        remark = chance.choice(["asked for a refund", "called support", ""] if left else ["very happy", ""])
        plan = chance.choice(["basic", "pro"])
        writer.writerow(
            [f"C{number:04d}", plan, "" if number % 9 == 0 else monthly, since, remark, "yes" if left else "no"]
        )

customers = TableFile("customers.csv").read().frame
train, test = customers[:400], customers[400:]
model = make_pipeline(TableEncoder(label="left"), LinearMulticlassSVC(random_state=0)).fit(train, train["left"])
print(model[0].summary())
print(f"test error {1 - model.score(test, test['left']):.1%}")

# The order of columns does not matter, labels need not be there, and the file has encoder and classifier.
larank.save(model, "customers.larank")
loaded = larank.load("customers.larank")
turned = test.select(test.columns[::-1]).drop("left")
print("same predictions", (loaded.predict(turned) == model.predict(test)).all())

# larank train customers.csv customers.larank --label left
# larank predict customers.larank new.csv predictions.csv --id customer
