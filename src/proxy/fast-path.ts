import { type CanActivate, ForbiddenException, Injectable, Logger } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/internal';
import { ExternalContextCreator, HttpAdapterHost, type NestContainer } from '@nestjs/core';
import {
  ExecutionContextHost,
  GuardsContextCreator,
  InterceptorsContextCreator,
} from '@nestjs/core/internal';
import { RouterExceptionFilters } from '@nestjs/core/router/router-exception-filters.js';
import type { Request, Response } from 'express';
import { isObservable, lastValueFrom } from 'rxjs';
import { RequestLogInterceptor } from '../request-log/request-log.interceptor.js';
import type { GatewayHttpAdapter } from './http/gateway-http.adapter.js';
import { ProxyController } from './proxy.controller.js';

/**
 * Runs the guards, the interceptor and the handler of ProxyController in Nest's order, without Nest's router, which takes
 * a third of a call's processor time. Not used, so that Nest's router runs, as soon as a module registers anything for all
 * controllers or for the paths of calls, or the handler has other parameters than the request and the response.
 */
@Injectable()
export class FastPath {
  private readonly logger = new Logger('Proxy');
  private guards: CanActivate[] = [];
  private interceptor!: RequestLogInterceptor;
  private controller!: ProxyController;
  private decorated!: () => Promise<void>;
  private sendError!: (error: unknown, context: ExecutionContextHost) => void;

  constructor(
    private readonly contexts: ExternalContextCreator,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
  ) {}

  /** Resolves guards, interceptor and filters, once everything is registered. @returns false if Nest's router is needed */
  prepare(): boolean {
    const container = this.contexts['container'] as NestContainer;
    const config = container.applicationConfig!;
    const [key, module] = [...container.getModules()].find(([, { controllers }]) =>
      controllers.has(ProxyController),
    )!;
    const wrapper = module.controllers.get(ProxyController)!;
    const ofAll = [
      ...config.getGlobalGuards(),
      ...config.getGlobalInterceptors(),
      ...config.getGlobalPipes(),
    ];
    // The gateway itself registers one filter. Request-scoped providers make the controller's dependency tree dynamic.
    if (ofAll.length > 0 || config.getGlobalFilters().length > 1 || !wrapper.isDependencyTreeStatic())
      return false;
    const parameters: object = Reflect.getMetadata(ROUTE_ARGS_METADATA, ProxyController, 'forward') as object;
    if (Object.keys(parameters).length !== ProxyController.prototype.forward.length) return false;
    this.controller = wrapper.instance as ProxyController;
    // Carries the metadata of the decorators; it is not called here.
    this.decorated = Reflect.get(this.controller, 'forward') as () => Promise<void>;
    const handler = [this.controller, this.decorated, key] as const;
    const interceptors = new InterceptorsContextCreator(container, config).create(...handler);
    if (interceptors.length !== 1 || !(interceptors[0] instanceof RequestLogInterceptor)) return false;
    this.interceptor = interceptors[0];
    this.guards = new GuardsContextCreator(container, config).create(...handler);
    const filters = new RouterExceptionFilters(container, config, this.host.httpAdapter).create(...handler);
    this.sendError = (error, context) => filters.next(error as Error, context);
    return true;
  }

  readonly run = (req: Request, res: Response): void => {
    const context = new ExecutionContextHost([req, res], ProxyController, this.decorated);
    try {
      const verdict = this.admit(context, 0);
      if (typeof verdict === 'boolean') this.proceed(verdict, context);
      else this.continueLater(verdict, context);
    } catch (error) {
      this.fail(error, context);
    }
  };

  private admit(context: ExecutionContextHost, first: number): boolean | Promise<boolean> {
    for (let i = first; i < this.guards.length; i++) {
      const verdict = this.guards[i]!.canActivate(context);
      if (verdict === false) return false;
      if (verdict !== true)
        return settled(verdict).then((admitted) => admitted && this.admit(context, i + 1));
    }
    return true;
  }

  private continueLater(verdict: Promise<boolean>, context: ExecutionContextHost): void {
    verdict
      .then((admitted) => this.proceed(admitted, context))
      .catch((error: unknown) => this.fail(error, context));
  }

  private proceed(admitted: boolean, context: ExecutionContextHost): void {
    if (!admitted) throw new ForbiddenException();
    const req = context.getArgByIndex<Request>(0);
    this.interceptor
      .record(req, () => this.controller.forward(req, context.getArgByIndex(1)))
      .catch((error: unknown) => this.fail(error, context));
  }

  private fail(error: unknown, context: ExecutionContextHost): void {
    try {
      this.sendError(error, context);
    } catch (failure) {
      // An error thrown here would end the process.
      this.logger.error('The error response failed', failure instanceof Error ? failure.stack : failure);
      context.getArgByIndex<Response>(1).destroy();
    }
  }
}

async function settled(verdict: Exclude<ReturnType<CanActivate['canActivate']>, boolean>): Promise<boolean> {
  const value = await verdict;
  return isObservable(value) ? lastValueFrom(value) : value;
}
