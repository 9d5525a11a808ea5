import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { describeFault } from '../database/database-fault.js';
import { Refusal } from '../refusal.js';
import { type CallLog, type CallOrigin, CallRecord } from './call-record.js';
import { Journal } from './journal.js';
import type { JournalFile } from './journal-file.js';
import { beginColumns, endColumns, type LogRow, NO_USAGE, usageColumns } from './log-row.js';
import { LogWriter } from './log-writer.js';

/** Keeps the records of calls under way and sees to it that each begun one becomes a row, whatever dies. */
@Injectable()
export class RequestLogService implements CallLog, OnApplicationShutdown {
  private readonly logger = new Logger('RequestLog');
  private readonly openCalls = new Set<CallRecord>();

  constructor(
    private readonly journal: Journal,
    private readonly writer: LogWriter,
  ) {}

  open(origin: CallOrigin): CallRecord {
    const call = new CallRecord(origin, this);
    this.openCalls.add(call);
    return call;
  }

  /** Calls whose record is not closed yet. */
  get underWay(): number {
    return this.openCalls.size;
  }

  begun(call: CallRecord): JournalFile {
    if (!this.journal.accepting) throw new Refusal('journal_unavailable');
    try {
      return this.journal.append({ t: 'B', ...beginColumns(call.origin, call.origin.key) });
    } catch (error) {
      throw new Refusal('journal_unavailable', { cause: error });
    }
  }

  ended(call: CallRecord): JournalFile | null {
    return this.tryAppend({ t: 'E', id: call.origin.id, ...endColumns(call) });
  }

  durable(): Promise<void> | null {
    return this.journal.strict ? this.journal.sync() : null;
  }

  /** Ends the record's life. A call refused before it was dispatched leaves no row. */
  close(call: CallRecord): void {
    this.openCalls.delete(call);
    if (!call.begun) return;
    // A handler that settled without a verdict means this process gave the call up.
    if (call.outcome === null) call.end('interrupted');
    call.settled();
    const { id, key } = call.origin;
    const usage = usageColumns(call, NO_USAGE);
    const file = this.tryAppend({ t: 'U', id, ...usage });
    if (file !== null) call.files.push(file);
    const row: LogRow = { ...beginColumns(call.origin, key), ...endColumns(call), ...usage };
    this.writer.add(row, call.files);
  }

  /** The verdict of calls the process is about to cut; what happens to their sockets afterwards is our own doing. */
  interruptOpenCalls(): void {
    for (const call of this.openCalls) call.end('interrupted');
  }

  async onApplicationShutdown(): Promise<void> {
    await this.writer.stop();
    await this.journal.close();
  }

  private tryAppend(record: Parameters<Journal['append']>[0]): JournalFile | null {
    try {
      return this.journal.append(record);
    } catch (error) {
      // The call has happened; its row is still in memory and goes to Postgres from there.
      this.logger.error(`The end of call ${record.id} could not be journalled: ${describeFault(error)}`);
      return null;
    }
  }
}
