import { type ChangeEvent, useState } from "react";
import { ApiProblem } from "../api/client.ts";

/** The rule that the service says a field breaks; null if the failure is about something else. */
function mistakeOf(thrown: unknown, field: string): string | null {
  if (!(thrown instanceof ApiProblem)) return null;
  return thrown.mistakes.find((one) => one.field.split(".").at(-1) === field)?.rule ?? null;
}

/**
 * The values of a form, and functions that bind an input to one of them. `failed` is the last request's failure, and
 * `onEdit` is called before each change of a value.
 */
export function useFields<Values extends Record<string, unknown>>(
  initial: Values | (() => Values),
  failed: Error | null = null,
  onEdit: () => unknown = () => undefined,
) {
  const [values, setValues] = useState(initial);
  type Name = keyof Values & string;
  const set = <One extends Name>(name: One, value: Values[One] | null) => {
    onEdit();
    setValues((before) => ({ ...before, [name]: value ?? before[name] }));
  };
  return {
    values,
    set,
    isMistaken: Object.keys(values).some((name) => mistakeOf(failed, name) !== null),
    /** Field for a text. */
    text: (name: Name) => ({
      value: values[name] as string,
      error: mistakeOf(failed, name),
      onChange: ({ currentTarget }: ChangeEvent<HTMLInputElement>) =>
        set(name, currentTarget.value as Values[Name]),
    }),
    /** Field for one of several values. */
    choice: <One extends Name>(name: One) => ({
      value: values[name],
      error: mistakeOf(failed, name),
      onChange: (value: Values[One] | null) => set(name, value),
    }),
    /** Field for a checkbox. */
    tick: (name: Name) => ({
      checked: values[name] as boolean,
      onChange: ({ currentTarget }: ChangeEvent<HTMLInputElement>) =>
        set(name, currentTarget.checked as Values[Name]),
    }),
  };
}
