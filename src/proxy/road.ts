import {
  type CanActivate,
  ForbiddenException,
  Injectable,
  Logger,
  type NestInterceptor,
} from '@nestjs/common';
import { ExternalContextCreator, HttpAdapterHost, type NestContainer } from '@nestjs/core';
import {
  ExecutionContextHost,
  GuardsContextCreator,
  InterceptorsContextCreator,
} from '@nestjs/core/internal';
import { RouterExceptionFilters } from '@nestjs/core/router/router-exception-filters.js';
import type { Request, Response } from 'express';
import { isObservable, lastValueFrom, Observable } from 'rxjs';
import type { GatewayHttpAdapter } from './gateway-http.adapter.js';
import { ProxyController } from './proxy.controller.js';

/**
 * A call's way through the guards and the interceptor that ProxyController is decorated with, in Nest's order. Nest's own
 * router does more, none of which these need, and takes a third of a whole call on Node 20 for it. Whatever a developer
 * registers for all controllers may need it: then calls are left to that router.
 */
@Injectable()
export class Road {
  private readonly logger = new Logger('Proxy');
  private guards: CanActivate[] = [];
  private interceptor!: NestInterceptor;
  private controller!: ProxyController;
  private decorated!: () => Promise<void>;
  private answerFault!: (error: unknown, context: ExecutionContextHost) => void;

  constructor(
    private readonly contexts: ExternalContextCreator,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
  ) {}

  /** Looks up what a call passes, once everything is registered. @returns false where Nest's router is needed */
  lay(): boolean {
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
    // Of filters the gateway has one itself. What is made for each request makes the controller's tree no static one.
    if (ofAll.length > 0 || config.getGlobalFilters().length > 1 || !wrapper.isDependencyTreeStatic())
      return false;
    this.controller = wrapper.instance as ProxyController;
    // What decorators are kept on; it is never called from here.
    this.decorated = Reflect.get(this.controller, 'forward') as () => Promise<void>;
    const handler = [this.controller, this.decorated, key] as const;
    const interceptors = new InterceptorsContextCreator(container, config).create(...handler);
    if (interceptors.length !== 1) return false;
    this.interceptor = interceptors[0]!;
    this.guards = new GuardsContextCreator(container, config).create(...handler);
    const faults = new RouterExceptionFilters(container, config, this.host.httpAdapter).create(...handler);
    this.answerFault = (error, context) => faults.next(error as Error, context);
    return true;
  }

  readonly run = (req: Request, res: Response): void => {
    const context = new ExecutionContextHost([req, res], ProxyController, this.decorated);
    try {
      const verdict = this.admit(context, 0);
      if (typeof verdict === 'boolean') this.goOn(verdict, context);
      else this.goOnLater(verdict, context);
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

  private goOnLater(verdict: Promise<boolean>, context: ExecutionContextHost): void {
    verdict
      .then((admitted) => this.goOn(admitted, context))
      .catch((error: unknown) => this.fail(error, context));
  }

  private goOn(admitted: boolean, context: ExecutionContextHost): void {
    if (!admitted) throw new ForbiddenException();
    const answered = this.interceptor.intercept(context, { handle: () => this.handle(context) });
    (answered as Observable<unknown>).subscribe({ error: (error) => this.fail(error, context) });
  }

  private handle(context: ExecutionContextHost): Observable<unknown> {
    return new Observable((subscriber) => {
      this.controller.forward(context.getArgByIndex(0), context.getArgByIndex(1)).then(
        () => {
          subscriber.next(undefined);
          subscriber.complete();
        },
        (error) => subscriber.error(error),
      );
    });
  }

  private fail(error: unknown, context: ExecutionContextHost): void {
    try {
      this.answerFault(error, context);
    } catch (fault) {
      // Nobody is left to answer, and a fault that is thrown here would end the process.
      this.logger.error('The answer to a fault failed', fault instanceof Error ? fault.stack : fault);
      context.getArgByIndex<Response>(1).destroy();
    }
  }
}

async function settled(verdict: Exclude<ReturnType<CanActivate['canActivate']>, boolean>): Promise<boolean> {
  const value = await verdict;
  return isObservable(value) ? lastValueFrom(value) : value;
}
