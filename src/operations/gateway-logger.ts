import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import type { Env } from '../config/env.js';

/** Nest's own levels, from the most to the least severe, and how many of them each LOG_LEVEL shows. */
const LEVELS: LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];
const SHOWN = { silent: 0, fatal: 1, error: 2, warn: 3, info: 4, debug: 5, trace: 6 };

/** Parts of Nest that list every module and route at each start: of interest only when debugging. */
const FRAMEWORK = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** Logs for people, or one JSON object a line in production. */
export class GatewayLogger extends ConsoleLogger {
  constructor(private readonly env: Pick<Env, 'nodeEnv' | 'logLevel'>) {
    super({
      prefix: 'postern',
      json: env.nodeEnv === 'production',
      logLevels: LEVELS.slice(0, SHOWN[env.logLevel]),
    });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (SHOWN[this.env.logLevel] < SHOWN.debug && FRAMEWORK.has(rest.at(-1) as string)) return;
    super.log(message, ...rest);
  }
}
