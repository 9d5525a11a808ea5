import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeError } from '../errors/describe-error.js';
import { FinishedCalls } from '../request-log/finished-calls.js';
import { startOf } from '../request-log/column-domains.js';
import { patience, withTimeout } from '../platform/patience.js';
import { callSpan, parentOf } from './call-span.js';

/** A collector that hangs must not keep the process from ending. */
const FLUSH = patience('spans at a stop', 3_000);
const REMIND_MS = 60_000;

/**
 * Sends one OpenTelemetry span per call to a provider, by OTLP over HTTP. If traces are off, OpenTelemetry is not loaded.
 * Spans are built after a call has finished; nothing is added to the request.
 */
@Injectable()
export class TracingService implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('Tracing');
  private provider: BasicTracerProvider | null = null;
  private toldAt = -Infinity;

  constructor(
    private readonly finished: FinishedCalls,
    @InjectSettings() private readonly env: Settings,
  ) {}

  async onModuleInit(): Promise<void> {
    const url = tracesUrl(this.env);
    if (url === null) return;
    const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace-base'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
    const complain = (message: string) => this.complain(message);
    const ignore = () => {};
    api.diag.setLogger(
      { error: complain, warn: complain, info: ignore, debug: ignore, verbose: ignore },
      { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
    );
    const exporter = new OTLPTraceExporter({ url, headers: headersOf(this.env.otelExporterOtlpHeaders) });
    this.provider = new sdk.BasicTracerProvider({
      resource: resourceFromAttributes({
        'service.name': this.env.otelServiceName,
        'service.instance.id': randomUUID(),
      }),
      spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
    });
    const tracer = this.provider.getTracer('postern');
    this.finished.listen('tracing', (call) => {
      const { row } = call;
      // A replay sends no request to a provider.
      if (row.outcome === 'replayed' || row.outcome === 'cached') return;
      const parent = parentOf(call);
      const traceState = call.tracestate === null ? undefined : api.createTraceState(call.tracestate);
      const context =
        parent === null
          ? api.ROOT_CONTEXT
          : api.trace.setSpanContext(api.ROOT_CONTEXT, { ...parent, isRemote: true, traceState });
      const { name, attributes, failed } = callSpan(call);
      const startTime = startOf(row.id);
      const span = tracer.startSpan(name, { kind: api.SpanKind.CLIENT, startTime, attributes }, context);
      if (failed) span.setStatus({ code: api.SpanStatusCode.ERROR });
      span.end(startTime + (row.duration_ms ?? 0));
    });
    this.logger.log('Traces are on.');
  }

  async onApplicationShutdown(): Promise<void> {
    const flushed = this.provider?.shutdown().catch((error: unknown) => this.complain(describeError(error)));
    if (flushed !== undefined) await withTimeout(FLUSH.ms, flushed);
  }

  /** Logged once a minute, because a collector may be unavailable for long. */
  private complain(message: string): void {
    const now = performance.now();
    if (now - this.toldAt < REMIND_MS) return;
    this.toldAt = now;
    this.logger.warn(`OpenTelemetry: ${message}`);
  }
}

type TracingSettings = Pick<
  Settings,
  'otelTracesExporter' | 'otelExporterOtlpEndpoint' | 'otelExporterOtlpTracesEndpoint'
>;

/** OpenTelemetry, OTLP exporter configuration: the endpoint of all signals gets `/v1/traces`. @returns null: off */
function tracesUrl(env: TracingSettings): string | null {
  const { otelTracesExporter, otelExporterOtlpEndpoint: all, otelExporterOtlpTracesEndpoint: own } = env;
  if (otelTracesExporter === 'none') return null;
  if (own !== undefined) return own;
  if (all === undefined) return otelTracesExporter === 'otlp' ? 'http://localhost:4318/v1/traces' : null;
  return `${all.replace(/\/+$/, '')}/v1/traces`;
}

/** `name=value,name=value`, values percent-encoded; checked with the other settings. */
function headersOf(list: string | undefined): Record<string, string> {
  const pairs = (list ?? '').split(',').filter((pair) => pair.includes('='));
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())];
    }),
  );
}
