import type { z } from "zod";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { BODY_MISTAKES, readJson } from "../read-json.ts";
import { json, type Reply, titleOf } from "../reply.ts";
import { ANY_JSON } from "./media-types.ts";

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
