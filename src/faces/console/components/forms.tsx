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
import { type ComponentType, type ReactNode, useEffect, useState } from "react";
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
