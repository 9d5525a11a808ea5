import { stat } from 'node:fs/promises';
import { Injectable, Logger } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { Journal } from './journal.js';
import type { KeptFile } from './kept-files.js';
import type { LostRowsService } from './lost-rows.service.js';
import { keptFiles, keptFolder, runOf } from './run-directories.js';

/** What an earlier run has kept, as its directory has it. */
type Found = Omit<KeptFile, 'keptAt'> & {
  /** When it was finished: ms since 1970. */
  readonly finishedAt: number;
};

/** What Postgres has of a run. */
interface Survived {
  readonly seq: bigint;
  /** When it was counted last, ms since 1970 of Postgres's clock; null: not known. */
  readonly at: number | null;
}

/** Decides what becomes of the files that earlier runs of this process have kept. */
@Injectable()
export class KeptOfDeadRuns {
  private readonly logger = new Logger('Journal');
  private readonly known = new Set<string>();

  constructor(
    private readonly journal: Journal,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Looks at the files that a dead run has kept, once. Of those with rows that Postgres has lost, `journal.kept` holds on to
   * each until its rows are put back. The others expire as those of this run do, but for those of a run that Postgres does
   * not know, or of a restored backup: an administrator decides about them.
   *
   * @param folder of the run
   * @param lost reads what Postgres has of runs
   * @throws errors of Postgres and of the disk
   */
  async find(folder: string, lost: Pick<LostRowsService, 'runs' | 'isLeft'>): Promise<void> {
    const run = runOf(folder);
    if (this.known.has(run)) return;
    const files = await this.read(folder, run);
    if (files.length > 0) {
      const { runs, regression } = await lost.runs(run);
      const row = runs.get(run);
      const noted = regression?.runs[run]?.surviving;
      const survived = row ?? (noted === undefined ? null : { seq: BigInt(noted), at: null });
      const isLeft = survived !== null && (await lost.isLeft(run, survived.seq));
      const isDecided = !isLeft && (regression === null || regression.state === 'put_back');
      const problem = this.problemOf(files, survived, isDecided);
      // In the order in which they go: of one run, those first that were finished first.
      for (const { finishedAt, ...file } of [...files].sort((a, b) => a.finishedAt - b.finishedAt)) {
        const age = Math.max(Date.now() - finishedAt, 0);
        this.journal.kept.add({ ...file, keptAt: problem === null ? performance.now() - age : Infinity });
      }
      if (problem === null) this.journal.kept.hold(run, survived!.seq);
      else this.report(folder, files, problem);
    }
    this.known.add(run);
  }

  /** Why nothing of these files is put back by itself, although something may be missing; null: it may be. */
  private problemOf(files: readonly Found[], survived: Survived | null, isDecided: boolean): string | null {
    if (survived === null) return 'Postgres does not know the process that wrote them';
    if (files.every(({ seq }) => seq <= survived.seq)) return null;
    const newest = Math.max(...files.map(({ finishedAt }) => finishedAt));
    const isBackup = survived.at !== null && newest - survived.at > this.env.journalKeepMs;
    return isBackup || !isDecided ? 'Postgres has an older state, as after a restored backup' : null;
  }

  private report(folder: string, files: readonly Found[], problem: string): void {
    this.logger.warn(
      `${files.length} finished journal files in ${keptFolder(folder)} are left as they are: ${problem}. If their rows ` +
        'belong to this database, stop the gateway and run: postern journal drain --kept. Otherwise remove the folder.',
    );
  }

  private async read(folder: string, run: string): Promise<Found[]> {
    const files: Found[] = [];
    for (const file of await keptFiles(folder)) {
      // The change time is that of the move to this folder.
      const { size, ctimeMs } = await stat(file.path);
      files.push({ ...file, run, bytes: size, finishedAt: ctimeMs });
    }
    return files;
  }
}
