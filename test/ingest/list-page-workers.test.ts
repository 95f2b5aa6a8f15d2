import { expect, onTestFinished, test } from "vitest";
import { createListPageWorkers } from "#jobs/ingest/list-page-workers.ts";

const SOURCE = { zoneId: 101, day: "1970-01-01", accepted: { from: 0, to: 10_000 } };

function open(threads: number) {
  const workers = createListPageWorkers({ threads });
  onTestFinished(() => workers.close());
  return workers;
}

const entry = (logId: string) => `{"logId":"${logId}","timestamp":5000,"log":"{}","labels":{}}`;
const page = (...ids: string[]) =>
  Buffer.from(`{"logs":[${ids.map(entry).join(",")}],"hasMoreData":true,"continuationToken":"t"}`);

test("pages that several threads digest at once return to their callers", async () => {
  const workers = open(2);
  const names = Array.from({ length: 20 }, (_, index) => `event-${index}`);
  const rows = await Promise.all(
    names.map(async (name) => (await (await workers.digest(page(name), SOURCE)).content).rows.toString()),
  );
  expect(rows.map((row) => row.split("\t")[2])).toEqual(names);
});

test("the records and rows of a large page are whole after they changed threads", async () => {
  const ids = Array.from({ length: 5_000 }, (_, index) => `größe-${index}`);
  const { envelope, content } = await open(1).digest(page(...ids), SOURCE);
  expect(envelope).toEqual({ logs: [], hasMoreData: true, continuationToken: "t" });
  const { rows, records, size } = await content;
  expect(size).toBe(5_000);
  expect(rows.toString().split("\n")).toHaveLength(5_001);
  const [start, end] = records.bounds.slice(-2);
  expect(records.bytes.toString("utf8", start, end)).toBe(entry("größe-4999"));
});

test("a page that is no JSON between its ends is refused, though its envelope was read", async () => {
  const body = Buffer.from(`{"logs":[{"logId":],{"a":1}],"hasMoreData":true,"continuationToken":null}`);
  const { envelope, content } = await open(1).digest(body, SOURCE);
  expect(envelope).toEqual({ logs: [], hasMoreData: true, continuationToken: null });
  await expect(content).rejects.toThrow("not what its end promised");
});

test("a thread that died fails its pages and the next page gets another", async () => {
  const workers = open(1);
  const { content } = await workers.digest(page("a"), SOURCE);
  await content;
  // Far more work than a thread can do before it is stopped.
  const pages = Array.from({ length: 50 }, () => page(...Array.from({ length: 2_000 }, (_, n) => `b${n}`)));
  const pending = pages.map((body) => workers.digest(body, SOURCE).then((digested) => digested.content));
  const closed = workers.close();
  await expect(pending.at(-1)).rejects.toThrow("thread ended");
  await Promise.allSettled([...pending, closed]);
  const again = await (await workers.digest(page("c"), SOURCE)).content;
  expect(again.size).toBe(1);
});
