import { Inject, Injectable, Logger, type OnApplicationShutdown, Optional } from '@nestjs/common';
import { describeError } from '../errors/describe-error.js';
import { GatewayError } from '../errors/gateway-error.js';
import { raiseReservation } from './charges.js';
import { CallList, type CallOrigin, CallRecord } from './call-record.js';
import { dollarsOf } from './column-domains.js';
import { EndUsers } from './end-users.js';
import { FinishedCalls } from './finished-calls.js';
import { type Entry, Journal } from './journal/journal.js';
import { encodeLines, encodeRecord } from './journal/record-codec.js';
import type { LogRow } from './columns.js';
import { dropKnownJob, emptyRow, setBegin, setEnd, setJob, setUsage } from './log-row.js';
import { LogWriter } from './writer/log-writer.js';
import { NO_USAGE, type ResponseUsage, type SeenJob } from '../bodies/usage/token-usage.js';
import type { Outcome } from './outcome.js';
import { JOB_KEEPER, type JobKeeper } from './writer/job-keeper.js';

/**
 * With at most so many calls in flight, starts and ends are journalled at once: hardly any other record would join them, and
 * what follows would wait for one more turn of the event loop. undici sends on a connection that was used before in the check
 * phase (its GHSA-35p6-xmwp-9g52), which a call that is dispatched there reaches one turn later.
 */
const FEW_CALLS = 4;
/**
 * How long responses wait to be read together, in ms: a response that is read alone takes three times as long, because none of
 * the code is in the processor's caches.
 */
const READ_MS = 5;

/** Holds the records of calls in flight, journals them, and passes their rows to the writer. */
@Injectable()
export class RequestLogService implements OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly calls = new CallList();
  /** Collected in this event-loop tick: records to journal at its end, in one write. */
  private beginnings: [CallRecord, (error: GatewayError | null) => void][] = [];
  private endings: [CallRecord, () => void][] = [];
  /** Closed calls whose responses are to be read. */
  private unread: CallRecord[] = [];
  /** Their token counts, to be journalled. */
  private read: [CallRecord, ResponseUsage][] = [];
  private tickScheduled = false;
  private readTimer: NodeJS.Timeout | null = null;

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly finished: FinishedCalls,
    private readonly users: EndUsers,
    @Optional() @Inject(JOB_KEEPER) private readonly jobs: JobKeeper | null = null,
  ) {}

  open(origin: CallOrigin): CallRecord {
    return this.watch(new CallRecord(origin));
  }

  /** Opens the record of the next attempt of a call, for another provider. */
  openNext(call: CallRecord, provider: string, upstream: string): CallRecord {
    return this.watch(call.next(provider, upstream));
  }

  private watch(call: CallRecord): CallRecord {
    call.watchesJobs = this.jobs !== null;
    return this.calls.add(call);
  }

  /** Calls whose record is not closed yet. */
  get openCount(): number {
    return this.calls.openCount;
  }

  /** Rows of the calls whose start is journalled, and that the writer does not have yet. @param ended only of those that have ended */
  *openRows(ended = false): Generator<LogRow> {
    for (const { row, outcome } of this.calls.all)
      if (row !== null && (!ended || outcome !== null)) yield row;
  }

  /** Calls whose record is not closed yet, or whose token counts are still being read. */
  get underWay(): number {
    return this.calls.all.size;
  }

  /**
   * Journals the start of a call: at once if there are few calls, otherwise together with the other records of this event-loop
   * tick. From then on the call gets a row.
   *
   * @param begun called before this returns, or within this tick. If it gets an error (journal_unavailable, or shutting_down if the call has
   * already ended), the call must not be forwarded.
   * @param isWhole the whole request has been read, and what was read with it. Otherwise a byte that is still to be parsed in
   * this tick may end the call
   */
  begin(call: CallRecord, begun: (error: GatewayError | null) => void, isWhole = false): void {
    this.beginnings.push([call, begun]);
    if (isWhole && this.calls.openCount <= FEW_CALLS) this.journalCollected();
    else this.scheduleEndOfTick();
  }

  /**
   * Ends an attempt of a call whose response the client does not get, and begins the next one, in one write.
   *
   * @param errorCode why the attempt failed; null if the provider responded
   * @param begun as for begin()
   */
  beginNext(
    before: CallRecord,
    errorCode: string | null,
    next: CallRecord,
    begun: (error: GatewayError | null) => void,
  ): void {
    before.judge('retried', errorCode);
    before.passTickets(next);
    if (!before.endIsWritten && before.row !== null) this.endings.push([before, () => this.close(before)]);
    else this.close(before);
    this.beginnings.push([next, begun]);
    this.scheduleEndOfTick();
  }

  /** Sets the outcome of a call and journals it at once, before the write that ends the response. */
  end(call: CallRecord, outcome: Outcome, errorCode: string | null = null): void {
    const first = call.outcome === null;
    if (!call.judge(outcome, errorCode) || !first || !call.begun) return;
    const { row } = call;
    if (row === null) return;
    setEnd(row, call);
    this.journalEnd(call, row);
  }

  /**
   * Sets the outcome of a call whose response is complete, and journals it with the other records of this event-loop tick.
   *
   * @param ended called when the outcome is journalled, within this tick unless the call has created a job; it makes the write that
   *   ends the response
   */
  endThen(call: CallRecord, outcome: Outcome, ended: () => void): void {
    call.judge(outcome, null);
    // After a shutdown that timed out, the writer already has the row.
    if (call.endIsWritten || call.row === null) {
      ended();
      return;
    }
    if (call.mayCreateJob) void this.endWithJob(call, ended);
    else this.endInTick(call, ended);
  }

  /** Notes the job that the call has created ahead of the last write: once the client knows it, a kill must not lose it. */
  private async endWithJob(call: CallRecord, ended: () => void): Promise<void> {
    // Reading never fails.
    const { job } = await call.readResponse();
    // Its client has disconnected meanwhile.
    if (call.endIsWritten || call.row === null) return ended();
    if (job !== undefined) this.noteJob(call.row, job);
    this.endInTick(call, ended);
  }

  private endInTick(call: CallRecord, ended: () => void): void {
    this.endings.push([call, ended]);
    if (this.calls.openCount <= FEW_CALLS) this.journalCollected();
    else this.scheduleEndOfTick();
  }

  private noteJob(row: LogRow, seen: SeenJob): void {
    const job = row.job ?? this.jobs?.seen(row, seen);
    if (job !== undefined) setJob(row, job);
  }

  /** Journals the job that the start of a stream describes, once that has arrived: the provider goes on with it if this process dies. */
  journalStreamedJob(call: CallRecord): void {
    const job = call.readStreamedJob();
    if (job === null || call.row === null) return;
    this.noteJob(call.row, job);
    this.journalUsage(call, NO_USAGE);
  }

  /** Settles when everything journalled so far is synced to disk. Null if responses need not wait for that. */
  durable(): Promise<void> | null {
    return this.journal.strict ? this.journal.sync() : null;
  }

  /** Closes the record. A call rejected before it was forwarded gets no row. */
  close(call: CallRecord): void {
    if (!this.calls.close(call)) return;
    // Never begun; or the shutdown timed out and gave the writer its row.
    if (call.row === null) {
      call.copy?.discard();
      this.finished.abandon(call);
      return;
    }
    // A handler that settled without an outcome: this process abandoned the call.
    if (call.outcome === null) this.end(call, 'interrupted');
    call.stopTimer();
    // A policy is notified in this event-loop tick: a next call may depend on what it gets back.
    if (call.hasTickets) {
      this.readClosed(call);
      this.scheduleEndOfTick();
    } else {
      this.unread.push(call);
      this.readTimer ??= setTimeout(this.readLater, READ_MS);
    }
  }

  /** Journals the usage so far of a call that goes on: if this process dies, its row has it. The newest counts. */
  journalUsage(call: CallRecord, usage: ResponseUsage): void {
    const { row } = call;
    if (row === null || call.outcome !== null) return;
    try {
      const soFar = { ...row };
      setUsage(soFar, call, usage);
      const file = this.journal.appendLines(encodeLines([encodeRecord('U', soFar, true)]), 1, true);
      // The file of the record before is not needed for it any more: one call must not keep a file for each 10 s.
      if (call.usageFile !== null) {
        call.files.splice(call.files.indexOf(call.usageFile), 1);
        this.journal.release([call.usageFile]);
      }
      call.files.push(file);
      call.usageFile = file;
    } catch (error) {
      this.logFailure(row.id, error);
    }
  }

  /** Sets the outcome of the open calls before the shutdown closes their sockets. */
  interruptOpenCalls(): void {
    for (const call of this.calls.all) if (!call.isClosed) this.end(call, 'interrupted');
  }

  async onApplicationShutdown(): Promise<void> {
    for (const call of this.unread.splice(0)) this.readClosed(call);
    // The shutdown has waited for these. A row without token counts is better than none until the next start.
    const calls = [...this.calls.all].filter(({ row }) => row !== null);
    for (const call of calls) if (call.outcome === null) this.end(call, 'interrupted');
    for (const call of calls) this.read.push([call, NO_USAGE]);
    if (this.readTimer !== null) clearTimeout(this.readTimer);
    this.append(this.finals());
    await this.writer.stop();
    await this.journal.close();
  }

  private scheduleEndOfTick(): void {
    if (this.tickScheduled) return;
    this.tickScheduled = true;
    setImmediate(this.endTick);
  }

  private readonly endTick = (): void => {
    this.tickScheduled = false;
    this.journalCollected();
  };

  private readonly readLater = (): void => {
    this.readTimer = null;
    const { unread } = this;
    this.unread = [];
    for (const call of unread) this.readClosed(call);
    this.append(this.finals());
  };

  private journalCollected(): void {
    const { beginnings, endings } = this;
    this.beginnings = [];
    this.endings = [];
    const entries: Entry[] = [];
    for (const [call, ended] of endings) {
      const { row } = call;
      // A shutdown that timed out has given the writer the row.
      if (row === null) ended();
      else entries.push(this.ending(call, row, ended));
    }
    for (const [call, begun] of beginnings) {
      if (call.outcome !== null) begun(new GatewayError('shutting_down'));
      else if (!this.journal.accepting) begun(new GatewayError('journal_unavailable'));
      else entries.push(this.beginning(call, begun));
    }
    entries.push(...this.finals());
    this.append(entries);
  }

  private append(entries: readonly Entry[]): void {
    if (entries.length > 0) this.journal.appendBatch(entries);
  }

  private beginning(call: CallRecord, begun: (error: GatewayError | null) => void): Entry {
    const row = emptyRow();
    setBegin(row, call, call.attribution && this.users.shown(call.attribution));
    return {
      json: encodeRecord('B', row),
      isStart: true,
      written: (file) => {
        call.beginWritten(file);
        call.row = row;
        begun(null);
      },
      failed: (error) => begun(new GatewayError('journal_unavailable', { cause: error })),
    };
  }

  private ending(call: CallRecord, row: LogRow, ended: () => void): Entry {
    setEnd(row, call);
    call.endIsInBatch = true;
    return {
      json: encodeRecord('E', row),
      isStart: false,
      written: (file) => {
        call.endIsInBatch = false;
        call.endWritten(file);
        ended();
      },
      failed: (error) => {
        call.endIsInBatch = false;
        this.logFailure(row.id, error);
        ended();
      },
    };
  }

  private readClosed(call: CallRecord): void {
    // Reading never fails; uncertain counts are null.
    const usage = call.countedUsage ?? call.readResponse();
    if (!('then' in usage)) this.read.push([call, usage]);
    else
      void usage.then((counts) => {
        this.read.push([call, counts]);
        this.scheduleEndOfTick();
      });
  }

  /** The final records of the calls whose responses were read; the writer gets their rows once these are written. */
  private finals(): Entry[] {
    const { read } = this;
    this.read = [];
    const entries: Entry[] = [];
    for (const [call, usage] of read) {
      // After a shutdown that timed out, the writer already has the row.
      const { row } = call;
      if (row !== null) entries.push(this.final(call, row, usage));
    }
    return entries;
  }

  private final(call: CallRecord, row: LogRow, usage: ResponseUsage): Entry {
    this.calls.finish(call);
    setEnd(row, call);
    setUsage(row, call, usage);
    if (usage.job !== undefined) this.noteJob(row, usage.job);
    else dropKnownJob(row);
    // A WebSocket has reserved what it used: it is charged that if its usage cannot be read to the end.
    if (call.countedUsage !== null && call.reservation !== null) {
      const { usd, tokens } = call.reservation;
      raiseReservation(row, dollarsOf(usd), tokens ?? 0);
    }
    // If the writer is full, the whole row is spilled to the journal.
    const isSpilled = this.writer.full;
    // If the end could not be journalled before, it is journalled here.
    if (!isSpilled && !call.endIsWritten && !call.endIsInBatch) this.journalEnd(call, row);
    return {
      json: isSpilled ? encodeRecord('R', row) : encodeRecord('U', row, call.usageFile !== null),
      isStart: false,
      written: (file) => {
        if (isSpilled) {
          this.writer.spill(file);
          this.journal.release(call.files);
        } else {
          call.files.push(file);
          this.writer.add(row, call.files, call.endIsWritten);
        }
        this.finished.notify(row, call, usage);
      },
      failed: (error) => {
        this.logFailure(row.id, error);
        this.writer.add(row, call.files, false);
        this.finished.notify(row, call, usage);
      },
    };
  }

  private journalEnd(call: CallRecord, row: LogRow): void {
    try {
      call.endWritten(this.journal.appendLines(encodeLines([encodeRecord('E', row)]), 1, true));
    } catch (error) {
      this.logFailure(row.id, error);
    }
  }

  /** Logs a failed write. The row is still in memory and goes to Postgres from there. */
  private logFailure(id: string, error: unknown): void {
    this.logger.error(`The end of call ${id} could not be journalled: ${describeError(error)}`);
  }
}
