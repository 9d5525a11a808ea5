import { type CanActivate, ForbiddenException, Injectable, type NestInterceptor } from '@nestjs/common';
import { ExternalContextCreator, HttpAdapterHost, type NestContainer } from '@nestjs/core';
import {
  ExecutionContextHost,
  GuardsContextCreator,
  InterceptorsContextCreator,
  PipesContextCreator,
} from '@nestjs/core/internal';
import { RouterExceptionFilters } from '@nestjs/core/router/router-exception-filters.js';
import type { Request, Response } from 'express';
import { defer, from, isObservable, lastValueFrom, mergeAll, Observable } from 'rxjs';
import type { GatewayHttpAdapter } from './gateway-http.adapter.js';
import { ProxyController } from './proxy.controller.js';

type Guarded = ReturnType<CanActivate['canActivate']>;

/**
 * A call's way through the guards, interceptors and filters that ProxyController is decorated with, and those that are
 * registered for all controllers, in Nest's order. Nest's own router does more, none of which a handler needs that answers
 * by itself, and takes a third of a whole call on Node 20 for it. Where there is something that only Nest's router does
 * (pipes, anything request-scoped), calls are left to it.
 */
@Injectable()
export class Road {
  private guards: CanActivate[] = [];
  private interceptors: NestInterceptor[] = [];
  private controller!: ProxyController;
  private fail!: (error: unknown, context: ExecutionContextHost) => void;

  constructor(
    private readonly contexts: ExternalContextCreator,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
  ) {}

  /** Looks up what a call passes, once everything is registered. @returns false where Nest's router is needed */
  lay(): boolean {
    const container = this.contexts['container'] as NestContainer;
    const [key, module] = [...container.getModules()].find(([, { controllers }]) =>
      controllers.has(ProxyController),
    )!;
    const wrapper = module.controllers.get(ProxyController)!;
    if (!wrapper.isDependencyTreeStatic()) return false;
    this.controller = wrapper.instance as ProxyController;
    const config = container.applicationConfig!;
    const handler = [this.controller, this.controller.forward as () => Promise<void>, key] as const;
    if (new PipesContextCreator(container, config).create(...handler).length > 0) return false;
    this.guards = new GuardsContextCreator(container, config).create(...handler);
    this.interceptors = new InterceptorsContextCreator(container, config).create(...handler);
    const faults = new RouterExceptionFilters(container, config, this.host.httpAdapter).create(...handler);
    this.fail = (error, context) => faults.next(error as Error, context);
    return true;
  }

  readonly run = (req: Request, res: Response): void => {
    const context = new ExecutionContextHost([req, res], ProxyController, this.controller.forward);
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
    if (!admitted) throw new ForbiddenException('Forbidden resource');
    this.behind(0, context).subscribe({ error: (error) => this.fail(error, context) });
  }

  /** What the interceptors from this one on make of the handler. */
  private behind(index: number, context: ExecutionContextHost): Observable<unknown> {
    const interceptor = this.interceptors[index];
    if (interceptor === undefined) return this.handle(context);
    const isLast = index + 1 === this.interceptors.length;
    const handle = () => (isLast ? this.handle(context) : defer(() => this.behind(index + 1, context)));
    const answers = interceptor.intercept(context, { handle });
    return isObservable(answers) ? answers : from(answers).pipe(mergeAll());
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
}

async function settled(verdict: Exclude<Guarded, boolean>): Promise<boolean> {
  const value = await (verdict as Promise<boolean> | Observable<boolean>);
  return isObservable(value) ? lastValueFrom(value as Observable<boolean>) : value;
}
