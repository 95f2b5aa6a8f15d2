import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { END, START } from "../detection/detect-support.ts";
import { createFractions } from "../detection/support/histories.ts";
import { SEED } from "../support/random-tests.ts";
import { sample } from "../support/sample.ts";
import { openBothWorlds, replayEvents, type SaidMessage } from "./both-worlds.ts";
import { createRequests, visitor } from "./draw-requests.ts";

const { runLive } = await openBothWorlds();

/** Draws requests of the visitors of a zone, and of what happens in it in the minutes that are watched. */
function drawWorld(seed: number): WafEvent[] {
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
    situations[integer(0, situations.length - 1)]?.(START + integer(3, 90));
  return events.filter(({ occurredAt }) => occurredAt < END * MINUTE_MS);
}

const line = ({ at, subject, reason, severity, attackers, rules, verdict }: SaidMessage) =>
  `${at - START} ${subject} ${reason} ${severity} [${attackers}] [${rules}] ${verdict}`;

const WORLDS = [
  [1, "of an older zone", null],
  [2, "of an older zone", null],
  [3, "of an older zone", null],
  [4, "in a zone's first day", START - 5 * 60],
] as const;
test.each(sample(WORLDS, ([number]) => number === 2 || number === 3))(
  "the service sends the messages of a replay of the same events (%d, %s)",
  async (number, _zone, first) => {
    const events = drawWorld((SEED % 100_000) * 10 + number).filter(
      ({ occurredAt }) => first === null || occurredAt >= first * MINUTE_MS,
    );
    const span = { from: START, to: END };
    const live = await runLive(events, span);
    const replayed = replayEvents(events, span);
    expect(live.length).toBeGreaterThan(0);
    // A replay ends with its last event, which may come before the last minute.
    const linesOf = (said: readonly SaidMessage[]) =>
      said
        .filter(({ at }) => at < END)
        .map(line)
        .toSorted();
    expect(linesOf(live)).toEqual(linesOf(replayed));
  },
);
