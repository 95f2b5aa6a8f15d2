import { MINUTE_MS } from "#lib/units.ts";
import { isSumRule } from "#model/rules.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { END } from "../detection/detect-support.ts";
import { makeEvent } from "../detection/trend-support.ts";

const HISTORY_MINUTES = 3 * 1_440;

/** Returns the visitor of a number: of 11 networks, with one of 7 fingerprints. */
export function visitor(index: number): Partial<WafEvent> {
  return {
    ip: `10.${index >> 8}.${index & 255}.1`,
    ja4: `t13d${index % 7}`,
    ua: `browser ${index % 9}`,
    asn: `AS${index % 11}`,
    country: "NL",
  };
}

/** Collects the events of requests. Each request is an event of each rule that it matches. */
export function createRequests(fraction: () => number = () => 0.5) {
  const events: WafEvent[] = [];
  let requests = 0;
  function request(minute: number, rules: readonly string[], event: Partial<WafEvent>): void {
    const occurredAt = minute * MINUTE_MS + Math.floor(fraction() * 60_000);
    requests += 1;
    for (const ruleId of rules) {
      // The sum stops a request whose rules only log.
      const own = isSumRule(ruleId) ? { ...event, action: "block" } : event;
      events.push(makeEvent({ occurredAt, ruleId, logId: `log-${requests}-${ruleId}`, ...own }));
    }
  }
  return {
    events,
    request,
    /** Three days of visitors before the end: an event every two minutes, each of another address, on four rules. */
    everyday(): void {
      for (let i = 0; i < HISTORY_MINUTES / 2; i += 1) {
        const url = `https://shop.example/page/${i % 13}?q=${i}`;
        request(END - HISTORY_MINUTES + 2 * i, [`94${i % 4}100`], { ...visitor(i), url, action: "log" });
      }
    },
  };
}
