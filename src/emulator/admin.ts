import { z } from "zod";
import {
  type createDrivenClock,
  type EmulatorContext,
  type RequestLog,
  Switches,
} from "./emulator-context.ts";
import { Fault } from "./faults.ts";
import { empty, json, problem, type Reply, validationProblem } from "./reply.ts";
import { matchPath } from "./router.ts";
import { type Attack, parseAttack } from "./traffic/attack.ts";
import type { Draft } from "./traffic/draft.ts";
import { toIdLine, toOracleLine } from "./traffic/render-event.ts";
import type { ZoneStore } from "./zone-store.ts";

/** The parts of the emulator that only the admin routes may use. */
export interface AdminContext {
  readonly requests: RequestLog;
  readonly clock: ReturnType<typeof createDrivenClock>;
  /** Throws a UsageError when the attack names a zone that is not served. */
  addAttack(attack: Attack): void;
}

interface AdminCall {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** The caller's address. */
  readonly from: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i;
const LOOPBACK = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/;
/** Size of a piece of the oracle: a piece for each minute would cost a system call each. */
const CHUNK_CHARS = 65_536;
const ClockChange = z.union([
  z.strictObject({ now: z.int().nullable() }),
  z.strictObject({ advanceMs: z.int() }),
]);
const AttackScript = z.union([
  z.string(),
  z.strictObject({ attack: z.string() }).transform((script) => script.attack),
]);

/** Returns the distinct rules with an event that is visible now, in order. */
function rulesOf(store: ZoneStore, nowMs: number): string[] {
  const columns = store.columns();
  const codes = columns.codesOf("ruleId");
  const seen = new Set<number>();
  for (let row = 0; row < columns.length(); row++) {
    if (columns.visibleAt(row) <= nowMs) seen.add(codes[row] ?? 0);
  }
  return [...seen].map((code) => columns.dictionaryOf("ruleId").textOf(code)).sort();
}

/** Returns the state of the emulator; `events` is the number of lines in the zone's oracle. */
async function describe(context: EmulatorContext): Promise<Reply> {
  const nowMs = context.now();
  const { apps, pullZones, takenDnsNames } = context.resources;
  const shieldZones: { id: number; events: number; rules: string[] }[] = [];
  for (const [id, store] of context.stores) {
    store.extendTo(nowMs);
    shieldZones.push({ id, events: await context.oracle.count(store, nowMs), rules: rulesOf(store, nowMs) });
  }
  return json(200, {
    accessKey: context.accessKey,
    now: nowMs,
    shieldZones,
    apps: [...apps.values()].map((app) => ({
      id: app.id,
      volumes: app.volumes.map(({ id, instances }) => ({ id, instances })),
    })),
    pullZones: [...pullZones.values()].map(({ id, hostnames }) => ({
      id,
      hostnames: hostnames.map((host) => host.name),
    })),
    dnsZones: takenDnsNames,
    faults: { active: context.faults.list(), switches: context.switches },
  });
}

function streamEvents(context: EmulatorContext, zoneText: string, toLine: (draft: Draft) => string): Reply {
  const store = context.stores.get(Number(zoneText));
  if (store === undefined) return problem(404, `The emulator serves no shield zone ${zoneText}.`);
  const nowMs = context.now();
  async function* lines(shieldZone: ZoneStore) {
    let text = "";
    for await (const drafts of context.oracle.everShown(shieldZone, nowMs)) {
      text += drafts.map(toLine).join("");
      if (text.length < CHUNK_CHARS) continue;
      yield text;
      text = "";
    }
    if (text !== "") yield text;
  }
  return {
    status: 200,
    headers: { "content-type": "application/x-ndjson; charset=utf-8" },
    body: lines(store),
  };
}

function parse<T extends z.ZodType>(schema: T, text: string): { value: z.output<T> } | { refusal: Reply } {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { refusal: validationProblem({ $: ["The body is not valid JSON."] }) };
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return { value: parsed.data };
  const errors: Record<string, string[]> = {};
  for (const issue of parsed.error.issues) (errors[issue.path.join(".") || "$"] ??= []).push(issue.message);
  return { refusal: validationProblem(errors) };
}

function addFaults(context: EmulatorContext, body: string): Reply {
  const read = parse(z.union([z.array(Fault), Fault.transform((fault) => [fault])]), body);
  if ("refusal" in read) return read.refusal;
  for (const fault of read.value) context.faults.add(fault);
  return json(200, { active: context.faults.list() });
}

function addAttack(context: EmulatorContext, admin: AdminContext, body: string): Reply {
  const read = parse(AttackScript, body);
  if ("refusal" in read) return read.refusal;
  const parsed = parseAttack(read.value, context.now());
  if ("mistakes" in parsed) return validationProblem({ attack: parsed.mistakes });
  if (!context.stores.has(parsed.attack.zone))
    return validationProblem({ attack: [`The emulator serves no shield zone ${parsed.attack.zone}.`] });
  admin.addAttack(parsed.attack);
  return json(200, parsed.attack);
}

function changeClock(context: EmulatorContext, admin: AdminContext, body: string): Reply {
  const read = parse(ClockChange, body);
  if ("refusal" in read) return read.refusal;
  if ("now" in read.value) admin.clock.set(read.value.now);
  else admin.clock.advance(read.value.advanceMs);
  return json(200, { now: context.now() });
}

/** Changes only the switches that are named. */
function changeSwitches(context: EmulatorContext, body: string): Reply {
  const read = parse(z.record(z.string(), z.unknown()), body);
  if ("refusal" in read) return read.refusal;
  const merged = parse(Switches, JSON.stringify({ ...context.switches, ...read.value }));
  if ("refusal" in merged) return merged.refusal;
  context.switches = merged.value;
  return json(200, context.switches);
}

function attachVolume(context: EmulatorContext, params: Record<string, string>, body: string): Reply {
  const read = parse(z.strictObject({ attached: z.boolean() }), body);
  if ("refusal" in read) return read.refusal;
  const volume = context.resources.apps
    .get(params["appId"] ?? "")
    ?.volumes.find(({ id }) => id === params["volumeId"]);
  if (volume === undefined) return problem(404, "There is no such application or volume.");
  for (const instance of volume.instances) instance.attached = read.value.attached;
  return json(200, volume);
}

/**
 * Returns why the admin routes refuse a call, or null. They need no key, so a web page must not reach them through a
 * browser on this machine. Such a request has the page's host or the page's origin.
 */
function whyRefused({ from, host = "", origin }: AdminCall): string | null {
  if (!LOOPBACK.test(from)) return "The admin routes answer on the loopback interface only.";
  if (!LOOPBACK_HOST.test(host)) return "The admin routes answer to the Host of the loopback interface only.";
  if (origin !== undefined && origin !== `http://${host}`)
    return "The admin routes answer no web page of another origin.";
  return null;
}

/**
 * Answers the routes below `/_emulator`. They need no key, but accept calls only from this machine and from no
 * foreign web page.
 */
export async function answerAdmin(
  context: EmulatorContext,
  admin: AdminContext,
  call: AdminCall,
): Promise<Reply> {
  const refused = whyRefused(call);
  if (refused !== null) return problem(403, refused);
  const events = matchPath(["", "_emulator", "events", ":zone"], call.path);
  const volume = matchPath(["", "_emulator", "apps", ":appId", "volumes", ":volumeId"], call.path);
  const ids = matchPath(["", "_emulator", "events", ":zone", "ids"], call.path);
  if (events && call.method === "GET") return streamEvents(context, events["zone"] ?? "", toOracleLine);
  if (ids && call.method === "GET") return streamEvents(context, ids["zone"] ?? "", toIdLine);
  if (volume && call.method === "POST") return attachVolume(context, volume, call.body);
  switch (`${call.method} ${call.path}`) {
    case "GET /_emulator":
      return describe(context);
    case "GET /_emulator/requests":
      return json(200, admin.requests.show());
    case "GET /_emulator/faults":
      return json(200, { active: context.faults.list() });
    case "POST /_emulator/faults":
      return addFaults(context, call.body);
    case "DELETE /_emulator/faults":
      context.faults.clear();
      return empty(204);
    case "POST /_emulator/attacks":
      return addAttack(context, admin, call.body);
    case "POST /_emulator/clock":
      return changeClock(context, admin, call.body);
    case "POST /_emulator/switches":
      return changeSwitches(context, call.body);
    default:
      return problem(404, "There is no such admin route.");
  }
}
