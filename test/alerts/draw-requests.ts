import { MINUTE_MS } from "#lib/units.ts";
import { isSumRule } from "#model/rules.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { END, START } from "../detection/detect-support.ts";
import { createFractions } from "../detection/support/histories.ts";
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

/** Draws the events of a zone: those of its visitors, and of what happens in it in the minutes that are watched. */
export function drawWorld(seed: number): WafEvent[] {
  const fraction = createFractions(seed);
  const integer = (from: number, to: number) => from + Math.floor(fraction() * (to - from + 1));
  const { events, request, ...requests } = createRequests(fraction);
  requests.everyday();

  const situations = [
    function scan(at: number) {
      const ip = `198.51.100.${integer(1, 250)}`;
      const rate = integer(4, 12);
      for (let i = 0; i < integer(8, 20) * rate; i += 1)
        request(at + Math.floor(i / rate), [`9${100 + (i % 40)}`], {
          ip,
          ja4: "t13tool",
          asn: "AS64500",
          ua: "tool",
          url: `https://shop.example/dir/${i}.php`,
        });
    },
    function joining(at: number) {
      const senders = integer(3, 6);
      for (let sender = 0; sender < senders; sender += 1)
        for (let i = 0; i < 120; i += 1)
          request(at + sender * 7 + Math.floor(i / 10), [`9${300 + (i % 30)}`], {
            ip: `198.18.0.${sender}`,
            ja4: "t13join",
            asn: `AS${64_800 + sender}`,
            ua: "tool",
            url: `https://shop.example/admin/${i}?id=${i}'%20or%201=1`,
            action: i % 3 === 0 ? "log" : "block",
          });
    },
    function botnet(at: number) {
      const ja4 = `t13net${integer(1, 99)}`;
      const rules = ["942100", "942190", "949110"].slice(0, integer(1, 3));
      for (let i = 0; i < integer(40, 150); i += 1)
        request(at + Math.floor(i / 8), rules, {
          ip: `203.0.113.${i % 120}`,
          ja4,
          asn: `AS${65_000 + (i % 30)}`,
          url: `https://shop.example/search?id=${i}'%20or%201=1`,
          action: "log",
        });
    },
    function misfire(at: number) {
      const rules = ["941100", "941160", "949110"].slice(0, integer(2, 3));
      const minutes = integer(15, 60);
      for (let i = 0; i < minutes * 6; i += 1)
        request(at + Math.floor(i / 6), rules, {
          ...visitor(integer(0, 400)),
          url: `https://shop.example/reviews/${i % 5}`,
        });
    },
    function few(at: number) {
      const number = integer(30, 200);
      for (let i = 0; i < number; i += 1)
        request(at + Math.floor(i / 10), ["943100"], {
          ip: `192.0.2.${i % 2}`,
          ja4: "t13few",
          asn: "AS64510",
          url: `https://shop.example/api/${i % 3}`,
          action: i % 3 === 0 ? "log" : "block",
        });
    },
    function waves(at: number) {
      const pause = integer(11, 45);
      for (let wave = 0; wave < 2; wave += 1)
        for (let i = 0; i < 80; i += 1)
          request(at + wave * (pause + 5) + Math.floor(i / 16), ["944100"], {
            ip: `100.64.${wave}.${i % 25}`,
            ja4: `t13w${i % 12}`,
            asn: `AS${64_600 + (i % 9)}`,
            url: `https://shop.example/login?next=${i}`,
          });
    },
    function unknownSenders(at: number) {
      const networks = integer(1, 30);
      for (let i = 0; i < integer(30, 120); i += 1)
        request(at + Math.floor(i / 12), ["945100", "980130"], {
          ip: "0.0.0.0",
          ja4: `t13u${i % networks}`,
          asn: `AS${64_700 + (i % networks)}`,
          url: `https://shop.example/item?id=${i}'%20union%20select`,
          action: "log",
        });
    },
  ];
  for (let count = integer(3, 5); count > 0; count -= 1)
    situations[integer(0, situations.length - 1)]?.(START + integer(3, 60));
  return events.filter(({ occurredAt }) => occurredAt < END * MINUTE_MS);
}
