import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type Client, crawler, JA4, person, tool, zombie } from "../clients.ts";
import type { Dice } from "../dice.ts";
import { PROBES } from "../everyday.ts";
import { FORM, type Request } from "../match-request.ts";
import { get, post } from "../sites.ts";
import { by } from "../stage.ts";
import { samplesOf, type Text, words } from "../texts.ts";
import { SCAN, type Scene, type Situation, situation } from "./situation.ts";

const HOSTILE = ["sqli", "xss", "lfi", "rce", "php", "java", "rfi", "node", "mixed", "xxe"].flatMap(
  samplesOf,
);
const PARAMETERS = ["id", "q", "page", "file", "cat", "url", "redirect", "lang"] as const;
const ENDS = [".bak", ".old", ".sql", ".zip", ".conf", ".log", ".ini", "/", ".php", ""] as const;
const PLUGINS = [
  "akismet",
  "contact-form-7",
  "elementor",
  "woocommerce",
  "wp-file-manager",
  "duplicator",
] as const;

export const hostileText = (dice: Dice): Text => dice.pick(HOSTILE);

/** Returns a guess of a path finder: most of them match nothing but the tool's name. */
const guess = (dice: Dice) =>
  get(
    dice.chance(0.3)
      ? dice.pick(PROBES)
      : `/${words(dice, 1)}${dice.pick(["", "-old", "_1", "2"])}${dice.pick(ENDS)}`,
  );

/** Returns a request of a tool that tries everything: files, parameters, forms. */
export function scanRequest(dice: Dice, path: string): Omit<Request, "client"> {
  if (dice.chance(0.35)) return get(dice.pick(PROBES));
  const name = dice.pick(PARAMETERS);
  const text = hostileText(dice);
  return dice.chance(0.75) ? get(path, name, text) : post(path, name, text, FORM);
}

/** Sends `count` requests of a tool, `perSecond` in the mean. */
function run(
  { dice, start, send }: Scene,
  clients: readonly Client[],
  count: number,
  perSecond: number,
  draft: (dice: Dice, index: number) => Omit<Request, "client">,
) {
  let at = start;
  for (let index = 0; index < count; index += 1) {
    at += dice.wait(1_000 / perSecond);
    send(at, by(dice.pick(clients), draft(dice, index)));
  }
}

const everything = (scene: Scene) => (dice: Dice) => scanRequest(dice, scene.site.pages(dice));
const nikto = (dice: Dice) =>
  tool(dice, "Mozilla/5.00 (Nikto/2.5.0) (Evasions:None) (Test:Port Check)", JA4.perl);
const NUCLEI = "Nuclei - Open-source project (github.com/projectdiscovery/nuclei)";

export const SCANNERS: readonly Situation[] = [
  situation("nikto", SCAN, {}, (scene) => run(scene, [nikto(scene.dice)], 900, 6, everything(scene))),
  situation("nuclei", SCAN, {}, (scene) =>
    run(scene, [tool(scene.dice, NUCLEI, JA4.go)], 1_200, 25, everything(scene)),
  ),
  situation("nuclei-random-agent", SCAN, { paranoia: 1 }, (scene) => {
    const { dice } = scene;
    const one = tool(dice, "", JA4.go, true);
    const clients = Array.from({ length: 20 }, () => ({ ...one, ua: person(dice).ua }));
    run(scene, clients, 800, 10, everything(scene));
  }),
  situation("wpscan", SCAN, { kinds: ["news", "shop"] }, (scene) =>
    run(
      scene,
      [tool(scene.dice, "WPScan v3.8.28 (https://wpscan.com/wordpress-security-scanner)", JA4.ruby, true)],
      700,
      5,
      (dice) =>
        dice.chance(0.25)
          ? get(dice.pick(["/wp-config.php.bak", "/wp-config.old", "/wp-content/debug.log"]))
          : get(`/wp-content/plugins/${dice.pick(PLUGINS)}/readme.txt`),
    ),
  ),
  situation("ffuf", SCAN, {}, (scene) =>
    run(scene, [tool(scene.dice, "Fuzz Faster U Fool v2.1.0-dev", JA4.go)], 2_000, 40, guess),
  ),
  situation("slow-gobuster", SCAN, {}, (scene) =>
    run(scene, [tool(scene.dice, "gobuster/3.6", JA4.go)], 700, 0.4, guess),
  ),
  situation("zgrab-sweep", { ...SCAN, tell: "may" }, {}, ({ dice, start, send }) => {
    for (let index = 0; index < 40; index += 1)
      send(start + dice.below(2 * HOUR_MS), {
        ...by(tool(dice, "Mozilla/5.0 zgrab/0.x", JA4.go), get("/")),
        host: `203.0.113.${dice.below(250)}`,
      });
  }),
  situation("secret-hunt", SCAN, {}, (scene) => {
    const { dice } = scene;
    const client = { ...tool(dice, person(dice).ua, JA4.python, true) };
    run(scene, [client], 350, 1.5, () =>
      get(`${dice.pick(["", "/app", "/api", "/old", "/public", "/web"])}${dice.pick(PROBES)}`),
    );
  }),
  situation("false-googlebot", SCAN, {}, (scene) => {
    const { dice } = scene;
    const { ua } = crawler(dice, "google");
    run(scene, [tool(dice, ua, JA4.python, true)], 500, 2, everything(scene));
  }),
  situation("shared-scan", SCAN, {}, (scene) => {
    const { dice } = scene;
    run(
      scene,
      Array.from({ length: 12 }, () => zombie(dice, JA4.python)),
      900,
      3,
      everything(scene),
    );
  }),
  situation("anonymous-scan", SCAN, { addresses: "anonymous" }, (scene) =>
    run(scene, [tool(scene.dice, NUCLEI, JA4.go)], 700, 12, everything(scene)),
  ),
  situation("masked-scan", SCAN, { addresses: "masked" }, (scene) =>
    run(scene, [nikto(scene.dice)], 700, 5, everything(scene)),
  ),
  situation("first-day-scan", SCAN, { isFirstDay: true }, (scene) =>
    run(scene, [nikto(scene.dice)], 900, 8, everything(scene)),
  ),
  situation("two-tools", SCAN, {}, (scene) => {
    run(scene, [tool(scene.dice, NUCLEI, JA4.go)], 500, 10, everything(scene));
    run({ ...scene, start: scene.start + 4 * MINUTE_MS }, [nikto(scene.dice)], 500, 6, everything(scene));
  }),
];
