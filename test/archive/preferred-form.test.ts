import { expect, test } from "vitest";
import { preferredForm } from "#archive/rules/export-lines.ts";

test.each([
  "application/x-ndjson",
  "application/ndjson",
  "Application/X-NDJSON; q=0.5",
  "application/x-ndjson;q=1, text/csv;q=0.9",
  "text/csv;q=0.5,application/x-ndjson",
  "text/csv, application/x-ndjson",
  "*/*;q=0.1, application/x-ndjson;q=0.2",
])("a client that accepts %s gets lines", (accept) => {
  expect(preferredForm(accept)).toBe("ndjson");
});

test.each([
  undefined,
  "",
  "*/*",
  "text/csv",
  "application/json",
  "application/*",
  "application/x-ndjson;q=0",
  "application/x-ndjson; q=0.000",
  "application/x-ndjson;q=0.1, text/csv",
  "application/x-ndjson-seq",
  "text/application/x-ndjson",
  "application/x-ndjson;q=nonsense",
])("a client that accepts %s gets CSV", (accept) => {
  expect(preferredForm(accept)).toBe("csv");
});

test.each([
  "application/vnd.apache.parquet",
  "text/csv, application/vnd.apache.parquet",
  "application/x-ndjson;q=0.5, application/vnd.apache.parquet;q=0.6",
])("a client that accepts %s gets Parquet", (accept) => {
  expect(preferredForm(accept)).toBe("parquet");
});
