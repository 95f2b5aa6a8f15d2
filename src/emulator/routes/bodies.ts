/** The bodies of requests, and the errors that each family of routes answers. */
import { TextDecoder } from "node:util";
import type { z } from "zod";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import {
  failureBlock,
  json,
  legacyError,
  problem,
  type Reply,
  titleOf,
  validationProblem,
} from "../reply.ts";
import type { ZoneStore } from "../zone-store.ts";

/** Maximum depth of a body, more than twice the depth of any operation's body. */
const MAX_DEPTH = 32;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;

type JsonBody =
  | { readonly value: unknown }
  /** The body has a media type that the operation does not accept, or is compressed. */
  | { readonly mistake: "media type" }
  | { readonly mistake: "not JSON" | "too deep" };

/** Error texts for a body that cannot be read, by mistake. */
const BODY_MISTAKES = {
  "not JSON": "The body is not valid JSON.",
  "too deep": `The body must not be nested more than ${MAX_DEPTH} deep.`,
} as const;

/**
 * Decodes a body. Bytes that are no text of their charset are refused, because replacement characters would change
 * the request.
 */
function decode(body: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

function isKnownCharset(charset: string): boolean {
  try {
    return new TextDecoder(charset).encoding !== "";
  } catch {
    return false;
  }
}

/** Returns whether a value is too deep. Works level by level, because recursion would fail on a deep body. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const containers = level.filter((item) => typeof item === "object" && item !== null);
    if (containers.length > 0 && depth === MAX_DEPTH) return true;
    level = containers.flatMap((item): unknown[] => Object.values(item));
  }
  return false;
}

/** Returns the JSON of a request's body, or its mistake. `mediaTypes` matches the media types of the operation. */
function readJson(call: Call, mediaTypes: RegExp): JsonBody {
  const charset = CHARSET.exec(call.contentType)?.[1] ?? "utf-8";
  const isPlain = call.contentEncoding === "" || call.contentEncoding.toLowerCase() === "identity";
  if (!isPlain || !mediaTypes.test(call.contentType) || !isKnownCharset(charset))
    return { mistake: "media type" };
  const text = decode(call.body, charset);
  if (text === undefined) return { mistake: "not JSON" };
  try {
    const value: unknown = JSON.parse(text);
    return isTooDeep(value) ? { mistake: "too deep" } : { value };
  } catch {
    return { mistake: "not JSON" };
  }
}

export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** Returns the application's path inside the platform, which error bodies name instead of the public one. */
function instanceOf(appId: string): string {
  return `/v3/apps/${appId}`;
}

/**
 * Returns the extended problem of the container operations, always labelled application/json. A switch changes it to
 * an array of `{message}` or a bare JSON string, which occur as well.
 */
export function containerError(
  context: EmulatorContext,
  error: { status: number; detail: string; appId: string; errors?: readonly FieldError[]; title?: string },
): Reply {
  const { status, detail, appId, errors = [] } = error;
  if (context.switches.containerErrors === "array") {
    return json(
      status,
      errors.length > 0 ? errors.map(({ message }) => ({ message })) : [{ message: detail }],
    );
  }
  if (context.switches.containerErrors === "string") return json(status, detail);
  const title = error.title ?? titleOf(status);
  return json(status, { title, status, detail, instance: instanceOf(appId), errors, id: appId });
}

/** Returns the variant with `type` and without `errors`. */
export function containerProblem(status: number, detail: string, appId: string): Reply {
  const type = `https://httpstatuses.example.test/${status}`;
  return json(status, { type, title: titleOf(status), status, detail, instance: instanceOf(appId) });
}

export function containerValidation(
  context: EmulatorContext,
  appId: string,
  errors: readonly FieldError[],
): Reply {
  const detail = "One or more validation errors occurred.";
  return containerError(context, { status: 400, title: "Validation Error", detail, appId, errors });
}

function messageOf(issue: z.core.$ZodIssue): string {
  const path = issue.path.join(".");
  return issue.code === "invalid_type" && issue.input === undefined
    ? `${path} is required.`
    : `${path}: ${issue.message}.`;
}

/** Parses a body, or answers with every field that breaks a rule. */
export function readContainerBody<T extends z.ZodType>(
  context: EmulatorContext,
  call: Call,
  schema: T,
): { value: z.infer<T> } | { refusal: Reply } {
  const appId = call.params["appId"] ?? "";
  const read = readJson(call, ANY_JSON);
  if (!("value" in read)) {
    const detail = "The request body must be sent as application/json, text/json or application/*+json.";
    if (read.mistake === "media type")
      return { refusal: containerError(context, { status: 415, detail, appId }) };
    const message = BODY_MISTAKES[read.mistake];
    return { refusal: containerValidation(context, appId, [{ field: "$", message }]) };
  }
  const parsed = schema.safeParse(read.value, { reportInput: true });
  if (parsed.success) return { value: parsed.data };
  const errors = parsed.error.issues.map((issue) => ({
    field: issue.path.join("."),
    message: messageOf(issue),
  }));
  return { refusal: containerValidation(context, appId, errors) };
}

/** Returns the JSON object of a pull zone or DNS zone request, or the legacy error for any other body. */
export function readLegacyBody(call: Call): { value: Record<string, unknown> } | { refusal: Reply } {
  const read = readJson(call, JSON_ONLY);
  const invalid = (message: string) => ({ refusal: legacyError(400, "model.invalid", "", message) });
  if ("value" in read) {
    const { value } = read;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: { ...value } };
    return invalid("The request body must be a JSON object.");
  }
  if (read.mistake === "too deep") return invalid(BODY_MISTAKES["too deep"]);
  if (read.mistake === "not JSON") return invalid("The request body must be a JSON object.");
  const message = "The request body must be sent as application/json.";
  return { refusal: legacyError(415, "model.unsupported_media_type", "", message) };
}

/** The one media type of the pull zone and DNS zone operations (platform API spec 4.2 and 4.3). */
const JSON_ONLY = /^application\/json\s*(;|$)/i;

/**
 * The three media types of the search, export and container operations. `application/*+json` is accepted literally too,
 * because a published client sends it.
 */
const ANY_JSON = /^(application\/json|text\/json|application\/[\w.*-]+\+json)\s*(;|$)/i;

const MAX_INT32 = 2_147_483_647;

/** Returns the requested zone, extended to the present; `undefined` when there is no such zone. */
export function findZone(
  context: EmulatorContext,
  call: Call,
): { store: ZoneStore | undefined; id: number } | { refusal: Reply } {
  const text = call.params["shieldZoneId"] ?? "";
  const id = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(id) || Math.abs(id) > MAX_INT32) {
    return {
      refusal: validationProblem({
        shieldZoneId: [`The value '${text}' is not valid: shieldZoneId must be a 32-bit integer.`],
      }),
    };
  }
  const store = context.stores.get(id);
  store?.extendTo(context.now());
  return { store, id };
}

/** Returns the block with which the platform answers an unknown or foreign zone, with HTTP 202. */
export function unknownZoneBlock() {
  return failureBlock(
    202,
    "not_found_or_unauthorised_access.shieldzone",
    "The Shield Zone was not found, or access to it is not authorised.",
  );
}

/** Returns the status block of a success; a switch may leave it out (`{}`). */
export function successBlock(
  context: EmulatorContext,
  name: "errorResponse" | "error",
): Record<string, unknown> {
  if (context.switches.errorResponse === "absent") return {};
  const isNull = context.switches.errorResponse === "null";
  return { [name]: isNull ? null : { statusCode: 0, success: false, message: null, errorKey: null } };
}

/** Returns the JSON of a body with one of the three accepted media types, or the platform's refusal. */
export function readJsonBody(call: Call): { value: unknown } | { refusal: Reply } {
  const read = readJson(call, ANY_JSON);
  if ("value" in read) return read;
  if (read.mistake === "media type") return { refusal: problem(415) };
  return { refusal: validationProblem({ $: [BODY_MISTAKES[read.mistake]] }) };
}
