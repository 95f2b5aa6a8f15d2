/** Small forms. */

import {
  Button,
  type ButtonProps,
  Popover,
  type PopoverProps,
  Stack,
  TextInput,
  type TextInputProps,
} from "@mantine/core";
import { type ChangeEvent, type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ApiProblem } from "#faces/console/api/client.ts";
import { ProblemBox } from "./states.tsx";

export interface Toggled {
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}

interface Props extends Toggled {
  readonly word: string;
  readonly button?: ButtonProps;
  readonly width?: number;
  readonly position?: PopoverProps["position"];
  /** A click beside the form does not close it: what it shows is shown once. */
  readonly isKept?: boolean;
  readonly onSubmit: () => void;
  /** The button that sends the form. Without it the form has a button of its own. */
  readonly submit?: Pick<ButtonProps, "loading" | "disabled"> & { readonly word: string };
  /** Shown above that button. */
  readonly problem?: Error | null;
  readonly children: ReactNode;
}

/** A button that opens a small form. What was typed belongs to the caller, so it stays when the request fails. */
export function PopoverForm({ word, button, isOpen, onToggle, width = 300, isKept = false, ...form }: Props) {
  const { position = "bottom-start", onSubmit, submit, problem = null, children } = form;
  const { word: sends, ...sending } = submit ?? { word: null };
  return (
    <Popover
      opened={isOpen}
      onChange={onToggle}
      position={position}
      shadow="md"
      trapFocus
      closeOnClickOutside={!isKept}
    >
      <Popover.Target>
        <Button variant="default" {...button} onClick={() => onToggle(!isOpen)}>
          {word}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onSubmit();
          }}
        >
          <Stack gap="xs" w={width} maw="calc(100vw - 48px)">
            {children}
            <ProblemBox thrown={problem} />
            {sends === null ? null : (
              <Button type="submit" size="xs" {...sending}>
                {sends}
              </Button>
            )}
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

/** A form that begins with empty fields each time it is opened. */
export function ToggledForm({ form: Form }: { readonly form: ComponentType<Toggled> }) {
  const [isOpen, setOpen] = useState(false);
  return <Form key={String(isOpen)} isOpen={isOpen} onToggle={setOpen} />;
}

interface TextFormProps extends Omit<TextInputProps, "onSubmit"> {
  /** The text in force, as the address has it. */
  readonly text: string;
  readonly onSubmit: (text: string) => void;
  readonly role?: string;
  readonly children?: ReactNode;
}

/** A text that takes effect when it is submitted. It follows the address, so that the back button is seen in it. */
export function TextForm({ text, onSubmit, role, className, children, ...input }: TextFormProps) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  return (
    <form
      role={role}
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(typed.trim());
      }}
    >
      <TextInput value={typed} onChange={(event) => setTyped(event.currentTarget.value)} {...input} />
      {children}
    </form>
  );
}

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
