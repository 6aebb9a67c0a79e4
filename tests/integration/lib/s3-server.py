"""OpenStack Swift with its S3 API, in one process: s3-server.py FOLDER, with the secret key in $S3_SECRET. It has the bucket
"logs" and the access key outpost:logs, checks each signature and the digest of each body, prints its port, and ends with its
standard input, on which it expects nothing. Debian: python3-swift."""
import os
import sys

import eventlet

eventlet.patcher.monkey_patch()

import eventlet.wsgi  # noqa: E402
from swift.common import utils  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.wsgi import loadapp, make_pre_authed_request  # noqa: E402

folder = sys.argv[1]
utils.HASH_PATH_SUFFIX = b'tests'
COMMON = f'''[DEFAULT]
swift_dir = {folder}
devices = {folder}
mount_check = false
log_level = CRITICAL
log_address = {folder}/no-log
fallocate_reserve = 0
'''


class Cache:
    """In place of memcached, which would be one more process."""

    def __init__(self):
        self.values = {}

    def get(self, key, **_):
        return self.values.get(key)

    def set(self, key, value, **_):
        self.values[key] = value

    def incr(self, key, delta=1, **_):
        self.values[key] = int(self.values.get(key) or 0) + delta
        return self.values[key]

    def delete(self, key, **_):
        self.values.pop(key, None)


def load(name, text):
    path = os.path.join(folder, name + '.conf')
    with open(path, 'w') as conf:
        conf.write(COMMON + text)
    return loadapp(path)


def serve(app):
    listener = eventlet.listen(('127.0.0.1', 0))
    eventlet.spawn(eventlet.wsgi.server, listener, app, log_output=False)
    return listener.getsockname()[1]


os.makedirs(os.path.join(folder, 'disk'))
for kind in ('account', 'container', 'object'):
    port = serve(load(kind, f'[pipeline:main]\npipeline = {kind}-server\n[app:{kind}-server]\nuse = egg:swift#{kind}\n'))
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({'id': 0, 'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': port, 'device': 'disk', 'weight': 1})
    builder.rebalance()
    builder.get_ring().save(os.path.join(folder, f'{kind}.ring.gz'))
proxy = load('proxy', f'''
[pipeline:main]
pipeline = s3api tempauth proxy-server
[filter:s3api]
use = egg:swift#s3api
location = eu-test-1
[filter:tempauth]
use = egg:swift#tempauth
user_outpost_logs = {os.environ["S3_SECRET"]} .admin
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
''')
cache = Cache()


def with_cache(env, start_response):
    env['swift.cache'] = cache
    return proxy(env, start_response)


made = make_pre_authed_request({'SERVER_NAME': 'x', 'SERVER_PORT': '80', 'swift.cache': cache}, 'PUT', '/v1/AUTH_outpost/logs')
status = made.get_response(proxy).status_int
assert status == 201, status
os.write(1, b'%d\n' % serve(with_cache))  # one write: the reader may close the pipe after it
eventlet.hubs.trampoline(0, read=True)
