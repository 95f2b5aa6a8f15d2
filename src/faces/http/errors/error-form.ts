import { PROBLEM_TYPE, type Problem } from "./problem.ts";

/**
 * The form in which an area of the platform's API reports errors that are not about the body (platform API spec 2.13).
 * `bare`: problem details. `status-code`: the status alone. `message`: the form of the account's operations.
 */
export type ErrorForm = "native" | "bare" | "status-code" | "message";

const JSON_TYPE = "application/json; charset=utf-8";

/** The section of RFC 9110 that defines the status. */
const SECTIONS: Readonly<Record<number, string>> = {
  400: "15.5.1",
  401: "15.5.2",
  403: "15.5.4",
  404: "15.5.5",
  413: "15.5.14",
  415: "15.5.16",
  500: "15.6.1",
  503: "15.6.4",
};

type Wording = (problem: Problem) => { readonly type: string; readonly body: object };

const WORDINGS: Readonly<Record<ErrorForm, Wording>> = {
  native: (problem) => ({ type: PROBLEM_TYPE, body: problem }),
  bare: ({ status, title, detail }) => {
    const type = `https://tools.ietf.org/html/rfc9110#section-${SECTIONS[status] ?? "15"}`;
    // A refused key gets no reason.
    const body = { type, title, status, ...(detail === undefined || status === 401 ? {} : { detail }) };
    return { type: PROBLEM_TYPE, body };
  },
  "status-code": ({ status }) => ({ type: JSON_TYPE, body: { statusCode: status } }),
  message: ({ status, title, detail }) => {
    const denied = "Authorization has been denied for this request.";
    return { type: JSON_TYPE, body: { Message: status === 401 ? denied : (detail ?? title) } };
  },
};

export function wordError(form: ErrorForm, problem: Problem): ReturnType<Wording> {
  return WORDINGS[form](problem);
}

/** Maximum length of a parameter in a path. A page token is longer than any other. */
export const MAX_PARAM_CHARS = 2_048;

/** Adds the broken rule to the framework's error. Keeps the framework's words if they contain the rule. */
export function wordFrameworkError(
  { code, message }: { readonly code?: string; readonly message?: string },
  { bodyLimit }: { readonly bodyLimit?: number | undefined },
): string | undefined {
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return `The request body must be at most ${bodyLimit} bytes.`;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return "The request body must be sent as application/json.";
  if (code === "FST_ERR_MAX_PARAM_LENGTH")
    return `No part of the path may have more than ${MAX_PARAM_CHARS} characters.`;
  return message;
}
