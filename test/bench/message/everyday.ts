import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type Client, crawler, JA4, person, server, tool } from "./clients.ts";
import { FORM, type Request } from "./match-request.ts";
import { get, post, textFrom } from "./sites.ts";
import { by, type Stage } from "./stage.ts";
import { PEOPLE } from "./texts.ts";
import { shareAt } from "./zones.ts";

/** The files that everybody on the internet asks for. */
export const PROBES =
  "/.env /.git/config /.git/HEAD /backup.sql /wp-config.php.bak /.aws/credentials /config.old /db.sql /.svn/entries /.htpasswd /dump.sql /site.bak /app.ini /debug.log /.DS_Store /web.config /id_rsa /private.key /error.log /.npmrc".split(
    " ",
  );

const REGULARS = 40;
const SHARE_OF_REGULARS = 0.5;

/** Draws a zone's usual traffic from its first event to `endMs`. */
export function drawEveryday(stage: Stage, endMs: number): void {
  drawVisitors(stage, endMs);
  drawInternet(stage, endMs);
  drawBursts(stage, endMs);
  drawMachines(stage, endMs);
}

function drawVisitors({ zone, dice, site, visit }: Stage, endMs: number): void {
  const regulars = Array.from({ length: REGULARS }, () => person(dice));
  const mean = DAY_MS / zone.visitsPerDay / 2.2;
  for (let at = zone.startMs; at < endMs; at += dice.wait(mean)) {
    // The wait is that of the busiest hour; quieter hours leave visits out.
    if (!dice.chance(shareAt(at, site.isOffice) / 2.2)) continue;
    const client = dice.chance(SHARE_OF_REGULARS) ? dice.pick(regulars) : person(dice);
    visit(at, by(client, dice.weighted(site.visits)(dice)));
  }
}

function drawInternet({ zone, dice, send }: Stage, endMs: number): void {
  const perDay = dice.between(8, 40);
  for (let at = zone.startMs + dice.wait(DAY_MS / perDay); at < endMs; at += dice.wait(DAY_MS / perDay)) {
    const isTool = dice.chance(0.35);
    const client = tool(dice, isTool ? "Mozilla/5.0 zgrab/0.x" : person(dice).ua, JA4.go);
    const request = by(client, get(dice.pick(PROBES)));
    send(at, dice.chance(0.3) ? { ...request, host: `203.0.113.${dice.below(250)}` } : request);
  }
  const scansPerDay = dice.between(0.3, 1.5);
  for (
    let at = zone.startMs + dice.wait(DAY_MS / scansPerDay);
    at < endMs;
    at += dice.wait(DAY_MS / scansPerDay)
  ) {
    const client = tool(dice, dice.chance(0.3) ? "python-requests/2.32.3" : person(dice).ua, JA4.python);
    for (const [index, path] of dice.shuffle(PROBES).slice(0, dice.whole(4, 16)).entries())
      send(at + index * dice.between(400, 4_000), by(client, get(path)));
  }
}

/** Draws what now and then comes at once and means nothing: a newsletter, a person who does not give up. */
function drawBursts({ zone, dice, site, visit, send }: Stage, endMs: number): void {
  const perDay = dice.between(0.1, 0.5);
  for (let at = zone.startMs + dice.wait(DAY_MS / perDay); at < endMs; at += dice.wait(DAY_MS / perDay)) {
    if (dice.chance(0.5)) {
      const link = PEOPLE.link(dice);
      const count = dice.whole(8, 30);
      for (let index = 0; index < count; index += 1)
        visit(at + dice.wait(20 * MINUTE_MS), by(person(dice), get("/l/news", "url", link)));
    } else {
      const request = by(person(dice), dice.weighted(site.visits)(dice));
      const count = dice.whole(4, 12);
      for (let index = 0; index < count; index += 1) send(at + dice.between(0, 9) * MINUTE_MS, request);
    }
  }
}

function drawMachines({ zone, dice, site, send }: Stage, endMs: number): void {
  const bots = [crawler(dice, "google"), crawler(dice, "bing"), crawler(dice, "ahrefs")];
  const perDay = dice.between(4, 25);
  for (let at = zone.startMs; at < endMs; at += dice.wait(DAY_MS / perDay))
    send(at, by(dice.pick(bots), get(site.pages(dice), "filter", textFrom("filter", dice))));
  if (zone.hasMonitor) {
    const monitor = server(dice, "uptime-check/3.1", JA4.curl);
    const every = dice.whole(10, 20) * MINUTE_MS;
    const request: Request = { client: { ...monitor, sendsAccept: false }, method: "HEAD", path: "/" };
    for (let at = zone.startMs + dice.below(every); at < endMs; at += every) send(at, request);
  }
  if (!zone.hasNightJob) return;
  const job = server(dice, "python-requests/2.31.0", JA4.python);
  const count = dice.whole(20, 70);
  const firstMs = Math.floor(zone.startMs / DAY_MS) * DAY_MS + dice.between(0, 4) * HOUR_MS;
  for (let night = firstMs; night < endMs; night += DAY_MS)
    for (let index = 0; index < count; index += 1) {
      const at = night + index * 3_000;
      if (at > zone.startMs && at < endMs) send(at, importOf(job, PEOPLE.quoted(dice)));
    }
}

const importOf = (client: Client, text: ReturnType<typeof PEOPLE.quoted>) =>
  by(client, post("/import/items", "description", text, FORM));
