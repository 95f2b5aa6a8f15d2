import { afterAll, onTestFinished } from "vitest";
import { createEmulator, type Emulator, type EmulatorOptions } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";

/** A Friday afternoon; the time of every test's clock until the test changes it. */
export const NOW = Date.UTC(2026, 10, 20, 15, 30);
export const TODAY = "11-20-2026";
export const YESTERDAY = "11-19-2026";

export interface OracleEvent {
  readonly logId: string;
  readonly timestamp: number;
  readonly feature: string;
  readonly ruleId: string;
  readonly ip: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly asn: string;
  readonly country: string;
  readonly action: string;
  readonly log: Record<string, unknown>;
}

export interface ListBody {
  readonly logs: { logId: string; timestamp: number; log: string; labels: Record<string, string> }[] | null;
  readonly hasMoreData: boolean;
  readonly continuationToken: string | null;
  readonly startToken: string | null;
  readonly errorResponse?: Record<string, unknown> | null;
}

export interface SearchBody {
  readonly rows:
    | { logId: string; timestamp: number; log: Record<string, unknown>; fields: Record<string, string> }[]
    | null;
  readonly groups:
    | {
        key: Record<string, string>;
        count: number;
        firstSeen: number;
        lastSeen: number;
        context: Record<string, string | number>;
        sparkline?: number[];
      }[]
    | null;
  readonly total: number;
  readonly totalPages: number;
  readonly page: number;
  readonly errorResponse?: Record<string, unknown> | null;
}

const createSmall = (options: EmulatorOptions) =>
  createEmulator({ eventsPerSecond: 0.3, historyHours: 3, clock: () => NOW, ...options });

/** Starts a small emulator whose clock is at NOW; closed when the test ends. */
export async function openEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const emulator = await createSmall(options);
  onTestFinished(() => emulator.close());
  return emulator;
}

/** Starts the same for all tests of a file, which only read from it. */
export async function shareEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const emulator = await createSmall(options);
  afterAll(() => emulator.close());
  return emulator;
}

export function call(
  emulator: Emulator,
  path: string,
  init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(emulator.url + path, { ...init, headers: { AccessKey: emulator.accessKey, ...init.headers } });
}

export function send(emulator: Emulator, method: string, path: string, body: unknown): Promise<Response> {
  return call(emulator, path, {
    method,
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
}

export async function bodyOf<T = Record<string, unknown>>(
  response: Response | Promise<Response>,
): Promise<T> {
  return (await (await response).json()) as T;
}

export async function search(
  emulator: Emulator,
  body: Record<string, unknown>,
  zone = 101,
): Promise<SearchBody> {
  const window = { from: emulator.now() - 71 * HOUR_MS, to: emulator.now() + 1 };
  const response = await send(emulator, "POST", `/shield/event-logs/${zone}/search`, { ...window, ...body });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return bodyOf<SearchBody>(response);
}

export function listPath(day: string, token?: string, zone = 101): string {
  return `/shield/event-logs/${zone}/${day}${token === undefined ? "" : `/${encodeURIComponent(token)}`}`;
}

/** Follows the tokens of one day; throws when it does not end. */
export async function walkDay(emulator: Emulator, day: string, zone = 101): Promise<ListBody[]> {
  const pages: ListBody[] = [];
  let token: string | undefined;
  while (pages.length < 1_000) {
    const page = await bodyOf<ListBody>(call(emulator, listPath(day, token, zone)));
    pages.push(page);
    if (!page.hasMoreData) return pages;
    token = page.continuationToken ?? undefined;
  }
  throw new Error("the walk did not end");
}

export async function oracle(emulator: Emulator, zone = 101): Promise<OracleEvent[]> {
  const text = await (await fetch(`${emulator.url}/_emulator/events/${zone}`)).text();
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as OracleEvent);
}
