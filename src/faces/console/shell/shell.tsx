import { AppShell } from "@mantine/core";
import type { ReactNode } from "react";
import { useAlertStream } from "../api/alert-stream.ts";
import { useTabSign } from "../state/tab-sign.ts";
import { Header } from "./header.tsx";
import { Ignored } from "./ignored.tsx";
import { Navigation, TabBar } from "./navigation.tsx";
import { PageBoundary } from "./page-boundary.tsx";
import classes from "./shell.module.css";
import { ShellKeys } from "./shell-keys.tsx";
import { Unreachable } from "./unreachable.tsx";

/** Header and navigation around a page. On narrow screens the navigation is a bar at the bottom. */
export function Shell({ children }: { readonly children: ReactNode }) {
  useAlertStream();
  useTabSign();
  return (
    <AppShell
      header={{ height: { base: 88, sm: 48 } }}
      navbar={{ width: 152, breakpoint: "sm", collapsed: { mobile: true } }}
      footer={{ height: { base: 56, sm: 0 } }}
      transitionDuration={0}
      padding={0}
    >
      <a className={classes["skip"]} href="#page">
        Skip to the page
      </a>
      <AppShell.Header className={classes["header"]}>
        <Header />
      </AppShell.Header>
      <AppShell.Navbar visibleFrom="sm" className={classes["navbar"]}>
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main id="page" tabIndex={-1} className={classes["main"]}>
        <Unreachable />
        <Ignored />
        {children}
      </AppShell.Main>
      <AppShell.Footer hiddenFrom="sm" className={classes["footer"]}>
        <TabBar />
      </AppShell.Footer>
      <PageBoundary>
        <ShellKeys />
      </PageBoundary>
    </AppShell>
  );
}
