import { isObject } from "#lib/is-object.ts";
import { ExtendedProblem, LegacyError, MinimalError, ProblemDetails } from "../contract/errors.ts";
import { GenericRequestResponse } from "../contract/generic-request-response.ts";

/** The content of an error body in any of the platform's shapes. */
export interface ErrorReading {
  readonly message: string | null;
  readonly errorKey: string | null;
  readonly field: string | null;
  /** The body's own status code; null when it has none. */
  readonly statusCode: number | null;
}

const SILENT: ErrorReading = { message: null, errorKey: null, field: null, statusCode: null };

function filled(text: string | null | undefined): string | null {
  return text === null || text === undefined || text.trim() === "" ? null : text;
}

function code(value: number | null | undefined): number | null {
  return value === null || value === undefined || value === 0 ? null : value;
}

/** Returns the status block from one of its three places; null if there is none with content. */
export function readBlock(value: unknown): (ErrorReading & { readonly success: boolean }) | null {
  const parsed = GenericRequestResponse.safeParse(value);
  if (!parsed.success) return null;
  const { statusCode, success, message, errorKey } = parsed.data;
  const reading = {
    message: filled(message),
    errorKey: filled(errorKey),
    field: null,
    statusCode: code(statusCode),
  };
  return { ...reading, success };
}

function readLegacy(body: object): ErrorReading | null {
  const legacy = LegacyError.parse(body);
  const reading = {
    ...SILENT,
    message: filled(legacy.Message),
    errorKey: filled(legacy.ErrorKey),
    field: filled(legacy.Field),
  };
  return reading.message === null && reading.errorKey === null ? null : reading;
}

/** `errors` is a list of {message, field} or, from model validation, a map of field to messages. */
function readIssues(errors: unknown): { field: string | null; message: string }[] {
  if (Array.isArray(errors)) {
    const listed = ExtendedProblem.parse({ errors }).errors ?? [];
    return listed.flatMap(({ message, field }) => {
      const text = filled(message);
      return text === null ? [] : [{ field: filled(field), message: text }];
    });
  }
  if (!isObject(errors)) return [];
  return Object.entries(errors).flatMap(([field, messages]) =>
    [messages]
      .flat()
      .filter((message) => typeof message === "string")
      .map((message) => ({ field: filled(field), message })),
  );
}

function readProblem(body: Record<string, unknown>): ErrorReading | null {
  const problem = ProblemDetails.parse(body);
  const issues = readIssues(body["errors"]);
  const said = issues.map(({ field, message }) => (field === null ? message : `${field}: ${message}`));
  const head = filled(problem.detail) ?? filled(problem.title);
  if (head === null && said.length === 0) return null;
  return {
    message: [head, ...said].filter((part) => part !== null).join("; "),
    errorKey: filled(typeof body["errorKey"] === "string" ? body["errorKey"] : null),
    field: issues.find((issue) => issue.field !== null)?.field ?? null,
    statusCode: code(problem.status),
  };
}

function readObject(body: Record<string, unknown>): ErrorReading {
  for (const place of [body["errorResponse"], body["error"]]) {
    const block = readBlock(place);
    if (block !== null && (block.message !== null || block.errorKey !== null)) return block;
  }
  const legacy = readLegacy(body);
  if (legacy !== null) return legacy;
  const problem = readProblem(body);
  if (problem !== null) return problem;
  const top = readBlock(body);
  if (top !== null && (top.message !== null || top.errorKey !== null)) return top;
  const inner = readBlock(body["errorResponse"]) ?? readBlock(body["error"]);
  const minimal = MinimalError.safeParse(body);
  return {
    ...SILENT,
    statusCode: (minimal.success ? code(minimal.data.statusCode) : null) ?? inner?.statusCode ?? null,
  };
}

function readText(text: string): ErrorReading {
  const plain = text.trim();
  if (plain === "") return SILENT;
  if (!plain.startsWith("<")) return { ...SILENT, message: plain };
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(plain.slice(0, 4_096))?.[1]?.trim();
  return {
    ...SILENT,
    message: title === undefined || title === "" ? "an HTML page" : `an HTML page: ${title}`,
  };
}

/**
 * Reads any error body: the status block (nested or on top), legacy error, problem details, both container problems,
 * bare statusCode, an array of messages, a bare string, plain text, HTML, nothing; platform API spec 2.13.
 * `json` is undefined when the text is not JSON.
 */
export function readErrorBody(json: unknown, text: string): ErrorReading {
  if (json === undefined) return readText(text);
  if (typeof json === "string") return readText(json);
  if (Array.isArray(json)) {
    const readings = json.map((item) => readErrorBody(item ?? "", ""));
    const said = readings.map((reading) => reading.message).filter((message) => message !== null);
    const first = readings.find((reading) => reading.errorKey !== null || reading.field !== null);
    return { ...SILENT, ...first, message: said.length === 0 ? null : said.join("; "), statusCode: null };
  }
  return isObject(json) ? readObject(json) : SILENT;
}
