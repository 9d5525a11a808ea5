import { inspect } from 'node:util';
import type { LoggerService } from '@nestjs/common';
import pino from 'pino';
import type { Settings } from '../config/settings.js';

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** One log entry. */
interface Entry {
  level: Level;
  /** The part of the gateway that logs it. */
  context: string | undefined;
  text: string;
  stack: string | undefined;
  /** The same facts for programs. */
  fields: object;
}

/** Contexts of Nest that log every module and route at each start; only logged at level debug. */
const FRAMEWORK = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** Nest logs an error of the start in this context and throws it: whatever starts the gateway prints it, with its stack. */
const RETHROWN = 'ExceptionHandler';

const WORST = new Set<Level>(['error', 'fatal']);
/** Names may contain anything: control characters are replaced, so that one entry stays one line and no terminal is affected. */
const CONTROL = /[\x00-\x1f\x7f-\x9f]/g;

/**
 * The target of Nest's Logger: one JSON object per line in production, otherwise one readable line; `error` and `fatal` go
 * to standard error. After the text a caller may pass an object with the same facts for programs:
 * `logger.warn('Rejected request …', { request_id })`.
 */
export class GatewayLogger implements LoggerService {
  private readonly logger: pino.Logger;

  constructor({
    nodeEnv,
    logLevel,
    worker,
    workers,
  }: Pick<Settings, 'nodeEnv' | 'logLevel' | 'worker' | 'workers'>) {
    const streams = [
      { level: 'trace' as const, stream: process.stdout },
      { level: 'error' as const, stream: process.stderr },
    ];
    this.logger = pino(
      {
        level: logLevel,
        base: { pid: process.pid, ...(workers > 1 && { worker }) },
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (level) => ({ level }) },
      },
      pino.multistream(streams, { dedupe: true }),
    );
    if (nodeEnv !== 'production') this.tell = (entry) => this.tellPeople(entry);
  }

  log(message: unknown, ...rest: unknown[]): void {
    if (FRAMEWORK.has(rest.at(-1) as string) && !this.logger.isLevelEnabled('debug')) return;
    this.take('info', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.take('fatal', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    if (rest.at(-1) === RETHROWN) return;
    this.take('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.take('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.take('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.take('trace', message, rest);
  }

  /** @param rest any of: fields, a stack, and, as the last one, the context */
  private take(level: Level, message: unknown, rest: unknown[]): void {
    if (!this.logger.isLevelEnabled(level)) return;
    const words = rest.filter((part) => typeof part === 'string');
    const context = words.pop();
    const fields = rest.find((part) => typeof part === 'object' && part !== null) ?? {};
    const isError = message instanceof Error;
    const stack = isError ? message.stack : words.at(-1);
    const text = isError ? message.message : typeof message === 'string' ? message : inspect(message);
    this.tell({ level, context, text, stack, fields });
  }

  private tell({ level, context, text, stack, fields }: Entry): void {
    this.logger[level]({ context, ...fields, stack }, text);
  }

  private tellPeople({ level, context = 'Postern', text, stack }: Entry): void {
    const time = new Date().toISOString();
    const line = clean(`${time} ${level.toUpperCase().padEnd(5)} ${context}: ${text}`);
    // Indented, so that no line of a stack, which starts with the error's message, looks like a log entry.
    const below = stack?.split('\n').map((each) => `    ${clean(each.trim())}`) ?? [];
    const stream = WORST.has(level) ? process.stderr : process.stdout;
    stream.write([line, ...below, ''].join('\n'));
  }
}

function clean(text: string): string {
  return text.replace(CONTROL, '?');
}
