import { Injectable, Logger } from '@nestjs/common';
import { describeError } from '../../errors/describe-error.js';
import type { PutBack, Regression } from '../../regressions/regression.js';
import { Regressions } from '../../regressions/regressions.service.js';
import { RequestLogService } from '../request-log.service.js';
import { LogWriter } from '../writer/log-writer.js';
import { Journal } from './journal.js';
import { LostRowsService } from './lost-rows.service.js';

/** Puts back the rows of this process run that Postgres had acknowledged and has lost. */
@Injectable()
export class OwnRows {
  private readonly logger = new Logger('Journal');

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly log: RequestLogService,
    private readonly lost: LostRowsService,
    private readonly regressions: Regressions,
  ) {
    // Claims wait for nothing: rows wait for Postgres's clock, and other processes for the claims.
    regressions.onRegression('ends', {
      refuse: (regression) => this.hold(regression),
      putBack: (regression) => this.prepare(regression),
    });
    regressions.onRegression('rows', {
      putBack: (regression) => this.putBack(regression),
      dismissed: () => journal.releaseHeld(0n),
    });
  }

  /** From here on, until its rows are put back, no file is deleted that has some. */
  private hold(regression: Regression): void {
    try {
      this.pathsOf(regression);
    } catch (error) {
      // Repeated with `putBack`.
      this.logger.error(`Files of the journal are not held yet: ${describeError(error)}`);
    }
  }

  private async prepare(regression: Regression): Promise<PutBack> {
    const paths = this.pathsOf(regression);
    return paths === null ? {} : { claims: await this.lost.prepare(paths, this.pending()) };
  }

  private async putBack(regression: Regression): Promise<PutBack> {
    const paths = this.pathsOf(regression);
    if (paths === null) return {};
    this.reportGone(regression);
    const result = await this.lost.putBack(paths, this.pending());
    if (result === null) throw new Error('this process is stopping');
    // The one with which counting goes on: every row is in Postgres before it.
    this.journal.releaseHeld(this.regressions.acknowledged + 1n);
    return { ...result };
  }

  /** @returns null if this process has lost nothing */
  private pathsOf({ runs }: Regression): string[] | null {
    const own = runs.get(this.regressions.run);
    return own === undefined ? null : this.journal.holdAbove(BigInt(own.surviving));
  }

  /** Calls whose rows are still to be written, in the tick in which their files were held or later. */
  private pending(): ReadonlySet<string> {
    return new Set([...this.log.openRows(), ...this.writer.waitingRows()].map(({ id }) => id));
  }

  private reportGone({ runs }: Regression): void {
    const surviving = BigInt(runs.get(this.regressions.run)!.surviving);
    if (this.journal.kept.goneSeq <= surviving) return;
    this.logger.error(
      'Some rows that Postgres has lost cannot be put back: the journal no longer has them. ' +
        'JOURNAL_KEEP_MS and JOURNAL_KEEP_BYTES say how much of it is kept.',
    );
  }
}
