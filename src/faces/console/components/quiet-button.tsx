import { Button, type ButtonProps } from "@mantine/core";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Scope } from "#model/kinds.ts";
import { useMay } from "../api/session.ts";
import { Icon, type IconName } from "../look/icons.tsx";

interface Props extends Omit<ButtonProps, "children"> {
  readonly word: ReactNode;
  /** Its name for people who do not see what it stands beside. */
  readonly label?: string;
  readonly icon?: IconName;
  readonly title?: string;
  /** Set for a button that stays pressed. */
  readonly isPressed?: boolean;
  /** A page of the console: then it is a link. */
  readonly href?: string;
  readonly onClick?: () => void;
}

/** A button that does not ask for attention. */
export function QuietButton({ word, label, icon, isPressed, href, onClick, ...button }: Props) {
  const shown = {
    variant: isPressed === true ? "light" : "default",
    "aria-label": label,
    "aria-pressed": isPressed,
    ...(icon === undefined ? {} : { leftSection: <Icon name={icon} size={13} /> }),
    ...button,
    children: word,
  };
  return href === undefined ? (
    <Button {...shown} onClick={onClick} />
  ) : (
    <Button {...shown} component={Link} href={href} />
  );
}

interface ActProps<Wanted> extends Omit<Props, "onClick" | "href"> {
  /** The right that it needs. Readers without it do not see the button. */
  readonly scope?: Scope;
  readonly change: UseMutationResult<unknown, Error, Wanted>;
  readonly input: Wanted;
}

/** A button that runs a change. It cannot be pressed again before the change has ended. */
export function ActButton<Wanted>({ scope = "act", change, input, ...button }: ActProps<Wanted>) {
  if (!useMay(scope)) return null;
  return <QuietButton loading={change.isPending} onClick={() => change.mutate(input)} {...button} />;
}
