import type { BacktestAlert } from "#stages/detection/backtest/backtest.ts";
import { toCell, writeLines } from "./write-lines.ts";

/** Writes `series,timestamp` for every minute in alert. */
export function writeAlertMinutes(path: string, alerts: readonly BacktestAlert[]): Promise<void> {
  return writeLines(path, lines(alerts));
}

function* lines(alerts: readonly BacktestAlert[]): Generator<string> {
  yield "series,timestamp\n";
  for (const { series, fromMinute, toMinute } of alerts) {
    const name = toCell(series);
    let text = "";
    for (let minute = fromMinute; minute < toMinute; minute += 1) text += `${name},${minute * 60}\n`;
    yield text;
  }
}
