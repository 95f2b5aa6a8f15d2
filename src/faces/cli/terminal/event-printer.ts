import { toDay } from "#model/horizon.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import type { StoreIo } from "../store/store-command.ts";
import { cutLine } from "./cut-line.ts";
import { describeEvent } from "./describe-event.ts";
import { pickPaint } from "./pick-paint.ts";

/** Returns a function that returns an event as a line, preceded by a line with the day whenever the day changes. */
export function createEventPrinter(io: Pick<StoreIo, "stdout">) {
  const paint = pickPaint(io);
  let shownDay = "";
  return (zoneId: number, event: ArchivedEvent): string => {
    const day = toDay(event.occurredAt);
    const head = day === shownDay ? "" : `${paint("dim", `${day} UTC`)}\n`;
    shownDay = day;
    const line = describeEvent(zoneId, event, paint);
    const cut = io.stdout.isTTY === true ? cutLine(line, io.stdout.columns ?? 80) : line;
    return `${head}${cut}\n`;
  };
}
