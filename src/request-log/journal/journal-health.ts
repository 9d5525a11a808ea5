import type { Logger } from '@nestjs/common';
import { describeError } from '../../errors/describe-error.js';

/** No room; lines refused; not brought to the disk; files that cannot be removed. The gravest first. */
const KINDS = ['space', 'write', 'sync', 'remove'] as const;
export type FaultKind = (typeof KINDS)[number];

/** What is wrong with the journal right now. */
export class JournalFaults {
  private readonly reasons = new Map<FaultKind, string>();
  private readonly told = new Map<FaultKind, Set<string>>(KINDS.map((kind) => [kind, new Set()]));

  constructor(private readonly logger: Logger) {}

  /** Tells the log of each fault once: one sick disk has other words for each file and each call, but the same code. */
  report(kind: FaultKind, error: unknown): void {
    const reason = describeError(error);
    const { code = reason } = error as NodeJS.ErrnoException;
    const told = this.told.get(kind)!;
    if (!told.has(code)) this.logger.error(`The journal is degraded: ${reason}`);
    told.add(code);
    this.reasons.set(kind, reason);
  }

  mended(kind: FaultKind): void {
    if (this.reasons.delete(kind)) this.told.get(kind)!.clear();
  }

  has(kind: FaultKind): boolean {
    return this.reasons.has(kind);
  }

  /** In words for an operator; null when all is well. */
  get gravest(): string | null {
    for (const kind of KINDS) if (this.reasons.has(kind)) return this.reasons.get(kind)!;
    return null;
  }
}
