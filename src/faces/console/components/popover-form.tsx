import { Button, type ButtonProps, Popover, type PopoverProps, Stack } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  readonly word: string;
  readonly button?: ButtonProps;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly width?: number;
  readonly position?: PopoverProps["position"];
  /** A click beside the form does not close it: what it shows is shown once. */
  readonly isKept?: boolean;
  readonly onSubmit: () => void;
  readonly children: ReactNode;
}

/** A button that opens a small form. What was typed belongs to the caller, so it stays when the request fails. */
export function PopoverForm({
  word,
  button = {},
  isOpen,
  onToggle,
  width = 300,
  position = "bottom-start",
  isKept = false,
  onSubmit,
  children,
}: Props) {
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
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
