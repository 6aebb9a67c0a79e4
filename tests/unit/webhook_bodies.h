/* Short webhook bodies in GitHub's form, which the tests of webhook/ send. */
#pragma once

#define SHA_HEAD "1111111111111111111111111111111111111111"
#define SHA_BASE "2222222222222222222222222222222222222222"

#define BODY_REPOSITORY                                                                                                \
	"\"repository\":{\"id\":1,\"name\":\"pytorch\",\"full_name\":\"pytorch/pytorch\","                             \
	"\"owner\":{\"login\":\"pytorch\",\"full_name\":\"not/this\"},\"private\":false,"                              \
	"\"url\":\"https://api.github.com/repos/pytorch/pytorch\",\"pushed_at\":1557933657},"                          \
	"\"sender\":{\"login\":\"carol\",\"type\":\"User\"}"

#define BODY_LABELS "\"labels\":[{\"id\":7,\"name\":\"ciflow/crcr/ascend-npu\"},{\"name\":\"bug\"}]"

/* The pull_request object's content. */
#define BODY_PULL                                                                                                      \
	"\"url\":\"https://api.github.com/repos/pytorch/pytorch/pulls/42\",\"id\":279147437,"                          \
	"\"number\":42,\"state\":\"open\",\"locked\":false,"                                                           \
	"\"title\":\"Fix \\u201cquoted\\u201d \\ud83d\\ude00 n\xc3\xa4mes\",\"body\":null,"                            \
	"\"user\":{\"login\":\"alice\",\"id\":21,\"site_admin\":false},"                                               \
	"\"author_association\":\"CONTRIBUTOR\",\"draft\":false,"                                                      \
	"\"created_at\":\"2019-05-15T15:20:33Z\",\"updated_at\":\"2019-05-15T15:21:18Z\","                             \
	"\"head\":{\"label\":\"alice:fix\",\"ref\":\"fix\",\"sha\":\"" SHA_HEAD "\",\"repo\":null},"                   \
	"\"base\":{\"label\":\"pytorch:main\",\"ref\":\"main\",\"sha\":\"" SHA_BASE "\"}," BODY_LABELS

#define BODY_OF_PULL(action, extra)                                                                                    \
	"{\"action\":\"" action "\",\"number\":42," extra "\"pull_request\":{" BODY_PULL "}," BODY_REPOSITORY "}"

#define BODY_PUSH                                                                                                      \
	"{\"ref\":\"refs/heads/main\",\"before\":\"" SHA_BASE "\",\"after\":\"" SHA_HEAD "\","                         \
	"\"created\":false,\"deleted\":false,\"head_commit\":{\"id\":\"" SHA_HEAD "\","                                \
	"\"message\":\"Land it\\n\\nAt last.\",\"author\":{\"name\":\"Alice A.\","                                     \
	"\"username\":\"alice\"}}," BODY_REPOSITORY "}"

#define BODY_COMMENT                                                                                                   \
	"{\"action\":\"created\",\"issue\":{\"number\":42,\"user\":{\"login\":\"alice\"},"                             \
	"\"pull_request\":{\"url\":\"https://example.org\"}},\"comment\":{\"id\":99,"                                  \
	"\"body\":\"@outpost retest\",\"user\":{\"login\":\"bob\",\"type\":\"User\"},"                                 \
	"\"author_association\":\"MEMBER\",\"created_at\":\"2019-05-15T15:20:21Z\"}"                                   \
	"," BODY_REPOSITORY "}"

#define BODY_CHECK_RUN                                                                                                 \
	"{\"action\":\"rerequested\",\"check_run\":{\"id\":4,\"external_id\":\"9:42\","                                \
	"\"name\":\"outpost\",\"head_sha\":\"0123456789abcdef0123456789abcdef01234567\","                              \
	"\"app\":{\"id\":12345}}"                                                                                      \
	"," BODY_REPOSITORY "}"

#define BODY_INSTALLATION                                                                                              \
	"{\"action\":\"created\",\"installation\":{\"id\":3},\"repositories\":[],"                                     \
	"\"sender\":{\"login\":\"carol\"}}"
