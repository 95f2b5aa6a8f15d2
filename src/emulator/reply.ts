/** The answer of a route. A stream is sent as it is produced. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<string>;
}

export const JSON_TYPE = "application/json; charset=utf-8";
const PROBLEM_TYPE = "application/problem+json; charset=utf-8";

const TITLES: Record<number, string> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

export function titleOf(status: number): string {
  return TITLES[status] ?? "Error";
}

export function json(status: number, body: unknown, contentType = JSON_TYPE): Reply {
  return { status, headers: { "content-type": contentType }, body: JSON.stringify(body) };
}

export function empty(status: number, headers: Record<string, string> = {}): Reply {
  return { status, headers, body: "" };
}

function typeOf(status: number): string {
  const section: Record<number, string> = {
    400: "15.5.1",
    401: "15.5.2",
    404: "15.5.5",
    413: "15.5.14",
    415: "15.5.16",
  };
  return `https://tools.ietf.org/html/rfc9110#section-${section[status] ?? "15"}`;
}

/** Returns bare problem details in the form of the platform's framework (platform API spec 2.13). */
export function problem(status: number, detail?: string): Reply {
  const body = {
    type: typeOf(status),
    title: titleOf(status),
    status,
    ...(detail === undefined ? {} : { detail }),
  };
  return json(status, body, PROBLEM_TYPE);
}

/** Returns the first of the mistakes and the number of others, for clients that show only `detail`. */
function detailOf(errors: Record<string, string[]>): string {
  const [first = "", ...others] = Object.values(errors).flat();
  return others.length === 0 ? first : `${first} (and ${others.length} more)`;
}

/** Returns problem details with the mistakes by field. */
export function validationProblem(errors: Record<string, string[]>): Reply {
  const title = "One or more validation errors occurred.";
  const detail = detailOf(errors);
  return json(400, { type: typeOf(400), title, status: 400, detail, errors }, PROBLEM_TYPE);
}

/** Returns the error of the recommendation and the metrics: its status alone (platform API spec 4.10 and 4.11). */
export function minimalError(statusCode: number): Reply {
  return json(statusCode, { statusCode });
}

/** Returns the error body of the key, pull zone and DNS operations: `ErrorKey`, `Field`, `Message`. */
export function legacyError(status: number, errorKey: string, field: string, message: string): Reply {
  return json(status, { ErrorKey: errorKey, Field: field, Message: message });
}

/** Returns a filled status block (platform API spec 2.5). */
export function failureBlock(statusCode: number, errorKey: string, message: string) {
  return { statusCode, success: false, message, errorKey };
}
