import fc from "fast-check";
import { expect, test } from "vitest";
import { readCsv } from "#proof/backfill/read-csv.ts";

async function read(chunks: readonly Buffer[]): Promise<string[][]> {
  const records: string[][] = [];
  for await (const { cells } of readCsv(asyncOf(chunks))) records.push([...cells]);
  return records;
}

async function* asyncOf(chunks: readonly Buffer[]) {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

function cut(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
    bytes.subarray(n * size, (n + 1) * size),
  );
}

test("any cells are read as they were written, wherever the chunks end", async () => {
  const cell = fc.oneof(
    fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "a", "é", "🦊", "=") }),
    fc.string(),
  );
  const records = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      records,
      fc.integer({ min: 1, max: 9 }),
      fc.boolean(),
      async (written, size, isMarked) => {
        const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
        const text = written.map((cells) => `${cells.map(quote).join(",")}\r\n`).join("");
        const bytes = Buffer.from(text);
        const file = isMarked ? Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]) : bytes;
        expect(await read(cut(file, size))).toEqual(
          written.map((cells) => cells.map((one) => one.toWellFormed())),
        );
      },
    ),
  );
});

test("plain cells, line feeds, empty lines and a last line without an end are read", async () => {
  expect(await read([Buffer.from("a,b\n\n1,\r\n,2")])).toEqual([
    ["a", "b"],
    ["1", ""],
    ["", "2"],
  ]);
});

test("a file that ends inside quotes is refused, and so is a record that does not end", async () => {
  await expect(read([Buffer.from('a,"b\n')])).rejects.toMatchObject({ code: "CSV_FILE" });
  const endless = [Buffer.from('"'), Buffer.alloc(1_100_000, "x"), Buffer.alloc(1_100_000, "x")];
  await expect(read(endless)).rejects.toMatchObject({ code: "CSV_FILE" });
});

test("a record of cells without end is refused", async () => {
  const endless = Array.from({ length: 10 }, () => Buffer.from("x,".repeat(500_000)));
  await expect(read(endless)).rejects.toMatchObject({ code: "CSV_FILE" });
});

test("a record keeps the text and the line that it has in the file", async () => {
  const file = Buffer.from('\uFEFFa,b\r\n\r\n\r\n"1\n2","x"\r\n,\n');
  const records: unknown[] = [];
  for await (const { text, line } of readCsv(asyncOf(cut(file, 3)))) records.push([line, text]);
  expect(records).toEqual([
    [1, "a,b"],
    [5, '"1\n2","x"'],
    [6, ","],
  ]);
});

test("a failure of the source is thrown as it is", async () => {
  async function* failing() {
    yield await Promise.resolve(Buffer.from("a,b\n"));
    throw new Error("connection lost");
  }
  const all = async () => {
    for await (const _ of readCsv(failing()));
  };
  await expect(all()).rejects.toThrow("connection lost");
});
