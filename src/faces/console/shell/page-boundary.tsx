import { Component, type ReactNode } from "react";
import { ProblemBox } from "../components/states.tsx";

interface Props {
  readonly title: string;
  readonly children: ReactNode;
}

/** Keeps the header and the navigation when a page fails, for instance after an update of the service. */
export class PageBoundary extends Component<Props, { readonly thrown: unknown }> {
  override readonly state = { thrown: null };

  static getDerivedStateFromError(thrown: unknown) {
    return { thrown };
  }

  override componentDidMount(): void {
    document.title = `${this.props.title} · Longwatch`;
  }

  override render(): ReactNode {
    const { thrown } = this.state;
    if (thrown === null) return this.props.children;
    return (
      <ProblemBox
        thrown={thrown}
        note="If Longwatch was updated while this page was open, load the page again."
        onRetry={() => globalThis.location.reload()}
      />
    );
  }
}
