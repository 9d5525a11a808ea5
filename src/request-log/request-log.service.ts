import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeFault } from '../database/database-fault.js';
import { Refusal } from '../refusal.js';
import { Account } from './account.js';
import { type CallLog, type CallOrigin, CallRecord } from './call-record.js';
import { FinishedCalls } from './finished-calls.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import { encodeBegin, encodeLines, encodeRecord } from './journal-line.js';
import { type Entry, journalTogether } from './journal-together.js';
import { beginColumns } from './log-row.js';
import { LogWriter } from './log-writer.js';
import { NO_USAGE } from './token-figures.js';
import { readUsage, readUsageAtOnce } from './usage-reader.js';

/** Keeps the records of calls under way and sees to it that each begun one becomes a row, whatever dies. */
@Injectable()
export class RequestLogService implements CallLog, OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly openCalls = new Set<CallRecord>();
  /** Calls that were begun and whose row the writer does not have yet. */
  private readonly unfinished = new Map<CallRecord, Account>();
  /** Of this turn of the event loop: what waits to be journalled, in its order, and calls that are over. */
  private beginnings: [CallRecord, (refusal: Refusal | null) => void][] = [];
  private endings: [Account, () => void][] = [];
  private closed: Account[] = [];
  private turnEnds = false;

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly finished: FinishedCalls,
  ) {}

  open(origin: CallOrigin): CallRecord {
    const call = new CallRecord(origin, this);
    this.openCalls.add(call);
    return call;
  }

  /** Calls whose record is not closed yet. */
  get openCount(): number {
    return this.openCalls.size;
  }

  /** Calls whose record is not closed yet, or whose answer is still being read. */
  get underWay(): number {
    return this.openCalls.size + this.unfinished.size;
  }

  begin(call: CallRecord, begun: (refusal: Refusal | null) => void): void {
    this.beginnings.push([call, begun]);
    this.atEndOfTurn();
  }

  end(call: CallRecord): void {
    const account = this.unfinished.get(call)!;
    const file = this.tryAppend([account.encodeEnd()], call.origin.id);
    if (file !== null) account.keepEnd(file);
  }

  endThen(call: CallRecord, ended: () => void): void {
    const account = this.unfinished.get(call);
    if (account === undefined || account.endKept) {
      ended();
      return;
    }
    this.endings.push([account, ended]);
    this.atEndOfTurn();
  }

  durable(): Promise<void> | null {
    return this.journal.strict ? this.journal.sync() : null;
  }

  /** Ends the record's life. A call refused before it was dispatched leaves no row. */
  close(call: CallRecord): void {
    this.openCalls.delete(call);
    const account = this.unfinished.get(call);
    // Never begun; or the shutdown has waited for it as long as it could, and given the writer its row.
    if (account === undefined) return;
    // A handler that settled without a verdict means this process gave the call up.
    if (call.outcome === null) call.end('interrupted');
    call.settled();
    this.closed.push(account);
    this.atEndOfTurn();
  }

  /** The verdict of calls the process is about to cut; what happens to their sockets afterwards is our own doing. */
  interruptOpenCalls(): void {
    for (const call of this.openCalls) call.end('interrupted');
  }

  async onApplicationShutdown(): Promise<void> {
    // The shutdown has waited for these; a row without figures is better than none before the next start.
    const calls = [...this.unfinished.keys()];
    for (const call of calls) if (call.outcome === null) call.end('interrupted');
    this.finish([...this.unfinished.values()]);
    await this.writer.stop();
    await this.journal.close();
  }

  private atEndOfTurn(): void {
    if (this.turnEnds) return;
    this.turnEnds = true;
    setImmediate(this.endTurn);
  }

  private readonly endTurn = (): void => {
    this.turnEnds = false;
    const { beginnings, endings, closed } = this;
    this.beginnings = [];
    this.endings = [];
    this.closed = [];
    const entries: Entry[] = [];
    for (const [account, ended] of endings) entries.push(this.ending(account, ended));
    for (const [call, begun] of beginnings) {
      if (call.outcome !== null) begun(new Refusal('shutting_down'));
      else if (!this.journal.accepting) begun(new Refusal('journal_unavailable'));
      else entries.push(this.beginning(call, begun));
    }
    if (entries.length > 0) journalTogether(this.journal, entries);
    if (closed.length > 0) this.readClosed(closed);
  };

  private beginning(call: CallRecord, begun: (refusal: Refusal | null) => void): Entry {
    const begin = beginColumns(call.origin, call.origin.key);
    return {
      json: encodeBegin(begin),
      isBeginning: true,
      kept: (file) => {
        call.beginKept(file);
        this.unfinished.set(call, new Account(call, begin));
        begun(null);
      },
      refused: (fault) => begun(new Refusal('journal_unavailable', { cause: fault })),
    };
  }

  private ending(account: Account, ended: () => void): Entry {
    const { call } = account;
    account.usage = readUsageAtOnce(call.contentType, call.contentEncoding, call.origin.endpoint, call.copy);
    return {
      json: account.encodeEnd(),
      isBeginning: false,
      kept: (file) => {
        account.keepEnd(file);
        ended();
      },
      refused: (fault) => {
        this.complain(1, call.origin.id, fault);
        ended();
      },
    };
  }

  private readClosed(closed: readonly Account[]): void {
    const read: Account[] = [];
    for (const account of closed) {
      const { call } = account;
      // Reading never fails: what is not certain is null.
      const usage =
        account.usage ?? readUsage(call.contentType, call.contentEncoding, call.origin.endpoint, call.copy);
      if ('then' in usage) {
        void usage.then((figures) => {
          account.usage = figures;
          this.finish([account]);
        });
      } else {
        account.usage = usage;
        read.push(account);
      }
    }
    this.finish(read);
  }

  /** Journals what is left to tell of these calls, in one write, and hands their rows to the writer, once. */
  private finish(accounts: readonly Account[]): void {
    const over = accounts.filter(({ call }) => this.unfinished.delete(call));
    const ended = over.map((account) => {
      const row = account.row();
      // A row that memory has no place for waits there.
      const isParked = this.writer.full;
      const rest = isParked ? encodeRecord({ t: 'R', ...row }) : account.encodeRest(row);
      return { account, row, isParked, rest };
    });
    const rests = ended.flatMap(({ rest }) => rest ?? []);
    const file = rests.length === 0 ? null : this.tryAppend(rests, ended[0]!.row.id);
    for (const { account, row, isParked, rest } of ended) {
      const { call, usage } = account;
      if (rest === null) {
        this.writer.add(row, call.files);
      } else if (file === null) {
        this.writer.add(row, call.files, false);
      } else if (isParked) {
        this.writer.park(file);
        this.journal.release(call.files);
      } else {
        call.files.push(file);
        this.writer.add(row, call.files);
      }
      this.finished.tell(row, call, usage ?? NO_USAGE);
    }
  }

  private tryAppend(records: readonly string[], firstId: string): JournalFile | null {
    try {
      return this.journal.appendLines(encodeLines(records), records.length, true);
    } catch (error) {
      this.complain(records.length, firstId, error);
      return null;
    }
  }

  /** The calls have happened; their rows are still in memory and go to Postgres from there. */
  private complain(count: number, firstId: string, error: unknown): void {
    const calls = count === 1 ? `call ${firstId}` : `${count} calls, ${firstId} the first,`;
    this.logger.error(`The end of ${calls} could not be journalled: ${describeFault(error)}`);
  }
}
