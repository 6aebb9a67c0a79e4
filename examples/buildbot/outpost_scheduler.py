"""Outpost's signed webhooks as a Buildbot scheduler.

Buildbot's own change hooks live in its web server, and that does not start without the buildbot-www
package, which Debian does not have. This scheduler brings a listener of its own. It answers 202 when the
builds are in Buildbot's database: until then Outpost keeps the webhook and sends it again.
"""
import hashlib
import hmac
import json
import os
import re
import time
import unicodedata

from buildbot.data import resultspec
from buildbot.process.properties import Properties, renderer
from buildbot.schedulers.base import BaseScheduler
from twisted.internet import defer, endpoints, reactor
from twisted.python import log
from twisted.web import resource, server

BODY_LIMIT = 26 << 20
TOKEN_LIFE = 30 * 24 * 3600  # seconds; Outpost's are valid until 7 days after the finish deadline


def list_of_tests(names):
    """Names of tests come from the code under test. One with a line break or another control character is left out."""
    return [name for name in names if not any(unicodedata.category(c) in ('Cc', 'Zl', 'Zp') for c in name)]


class Webhook(resource.Resource):
    isLeaf = True

    def __init__(self, secret, take):
        super().__init__()
        self.secret = secret
        self.take = take

    def render_POST(self, request):
        body = request.content.read(BODY_LIMIT + 1)
        signature = request.getHeader('X-Hub-Signature-256') or ''
        expected = 'sha256=' + hmac.new(self.secret, body, hashlib.sha256).hexdigest()
        if len(body) > BODY_LIMIT or not hmac.compare_digest(signature.encode(), expected.encode()):
            request.setResponseCode(401)
            return b'the signature does not fit\n'
        done = defer.maybeDeferred(self.take, request.getHeader('X-Outpost-Event'), body)
        done.addCallback(lambda code: self.answer(request, code))
        done.addErrback(self.failed, request)
        return server.NOT_DONE_YET

    def answer(self, request, code):
        request.setResponseCode(code)
        request.finish()

    def failed(self, failure, request):
        log.err(failure, 'a webhook of Outpost could not be taken')
        self.answer(request, 503)  # Outpost sends it again


class OutpostScheduler(BaseScheduler):
    """secret_file: what signs the webhooks. listen: a Twisted endpoint ('tcp:8011:interface=127.0.0.1');
    Outpost calls https, so TLS ends at a proxy in front, or here ('ssl:…'). tokens: a folder for the tokens
    with which builds report, and for the lists of experiments' tests; as properties they would be shown on
    every build."""

    def __init__(self, name, builderNames, secret_file, listen, tokens, **kwargs):
        super().__init__(name, builderNames, **kwargs)
        self.secret_file = secret_file
        self.listen = listen
        self.tokens = tokens
        self.listener = None

    @defer.inlineCallbacks
    def activate(self):
        yield super().activate()
        os.makedirs(self.tokens, mode=0o700, exist_ok=True)
        with open(self.secret_file, 'rb') as file:
            secret = file.read().rstrip(b'\r\n')
        site = server.Site(Webhook(secret, self.take))
        self.listener = yield endpoints.serverFromString(reactor, self.listen).listen(site)

    @defer.inlineCallbacks
    def deactivate(self):
        if self.listener:
            yield self.listener.stopListening()
            self.listener = None
        yield super().deactivate()

    def take(self, event, body):
        hook = json.loads(body)
        if 'payload' not in hook:  # a notice: nothing is to be built
            log.msg(f"Outpost: {event}: {hook.get('accelerator')} on {hook.get('branch')}, {hook.get('url')}")
            return 202
        dispatch = hook['outpost']['dispatch_id']
        if not re.fullmatch('[A-Za-z0-9]{1,64}', dispatch):
            return 400
        if event == 'cancel':
            return self.cancel(dispatch)
        return self.begin(dispatch, hook)

    def buildsets(self, dispatch):
        return self.master.data.get(
            ('buildsets',), filters=[resultspec.Filter('external_idstring', 'eq', [dispatch])])

    @defer.inlineCallbacks
    def begin(self, dispatch, hook):
        if (yield self.buildsets(dispatch)):
            return 202  # sent again because an answer was lost: it is built once
        outpost, payload = hook['outpost'], hook['payload']
        if 'experiment' in outpost:
            tests = list_of_tests(outpost['experiment']['tests'])
            if not tests:
                return 400  # an empty list must not mean all tests
            self.keep(f'{dispatch}.tests', ''.join(f'{test}\n' for test in tests))
        self.keep(dispatch, outpost['callback_token'])
        pull = payload.get('pull_request')
        properties = Properties()
        properties.update({
            'outpost_dispatch': dispatch,
            'outpost_callback_url': outpost['callback_url'],
            'outpost_change_url': outpost.get('change_url', ''),
        }, 'Outpost')
        yield self.addBuildsetForSourceStamps(
            sourcestamps=[{
                'codebase': '',
                'project': payload['repository']['full_name'],
                'repository': payload['repository'].get('clone_url', ''),
                'branch': f"refs/pull/{payload['number']}/head" if pull else payload['ref'],
                'revision': pull['head']['sha'] if pull else payload.get('head_sha') or payload['after'],
            }],
            reason=outpost.get('change_url') or 'Outpost', external_idstring=dispatch, properties=properties)
        return 202

    @defer.inlineCallbacks
    def cancel(self, dispatch):
        answer = 202
        for buildset in (yield self.buildsets(dispatch)):
            requests = yield self.master.data.get(('buildrequests',), filters=[
                resultspec.Filter('buildsetid', 'eq', [buildset['bsid']]),
                resultspec.Filter('complete', 'eq', [False])])
            for request in requests:
                where = ('buildrequests', request['buildrequestid'])
                if request['claimed'] and not (yield self.master.data.get(where + ('builds',))):
                    answer = 503  # about to begin, when Buildbot cannot stop it; Outpost asks again
                yield self.master.data.control('cancel', {'reason': 'the change was superseded or closed'}, where)
        return answer

    def keep(self, file_name, text):
        for name in os.listdir(self.tokens):
            path = os.path.join(self.tokens, name)
            if os.path.getmtime(path) < time.time() - TOKEN_LIFE:
                os.remove(path)
        path = os.path.join(self.tokens, file_name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8', newline='\n') as file:
            file.write(text)


def token_of_build(tokens):
    """Renders to the token with which this build may report."""
    @renderer
    def read(properties):
        with open(os.path.join(tokens, properties['outpost_dispatch']), encoding='ascii') as file:
            return file.read()
    return read


def tests_of(tokens, properties):
    """The file with the tests of an experiment, one in a line; None for every other build."""
    path = os.path.join(tokens, f"{properties['outpost_dispatch']}.tests")
    return path if os.path.exists(path) else None
