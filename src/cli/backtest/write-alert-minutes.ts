import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { BacktestAlert } from "../../detection/backtest/backtest.ts";

/** Writes `series,timestamp` for every minute in alert. The file appears only when it is complete. */
export async function writeAlertMinutes(path: string, alerts: readonly BacktestAlert[]): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await pipeline(Readable.from(lines(alerts)), createWriteStream(unfinished, { flags: "wx" }));
    await rename(unfinished, path);
  } catch (cause) {
    await rm(unfinished, { force: true });
    throw cause;
  }
}

function* lines(alerts: readonly BacktestAlert[]): Generator<string> {
  yield "series,timestamp\n";
  for (const { series, fromMinute, toMinute } of alerts) {
    const name = /[",\r\n]/.test(series) ? `"${series.replaceAll('"', '""')}"` : series;
    let text = "";
    for (let minute = fromMinute; minute < toMinute; minute += 1) text += `${name},${minute * 60}\n`;
    yield text;
  }
}
